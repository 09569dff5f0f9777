// Compiled with -O2: templates and functions that the compiler inlines. Each is still a line of its own in the report.
//
// What memprof must show:
//
// - Ring<int>::push and Ring<double>::push, inlined into main, are functions of their own: 10 allocations each, of
//   4 * 2^i and 8 * 2^i bytes for i = 0..9: 4,092 and 8,184 bytes, all freed.
// - make_names, a vector of 1,000 strings of 40 characters: 1,000 blocks of 41 bytes, and one of 32,000 bytes for the
//   vector, reserved at once.
// - Tree::insert, recursive: 127 nodes of 24 bytes.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

template <class T> class Ring
{
  public:
    ~Ring()
    {
        std::free(data_);
    }
    [[gnu::always_inline]] void push(const T &value)
    {
        if (count_ == capacity_) {
            capacity_ = capacity_ ? capacity_ * 2 : 1;
            T *larger = static_cast<T *>(std::malloc(capacity_ * sizeof(T)));
            for (std::size_t i = 0; i < count_; i++)
                larger[i] = data_[i];
            std::free(data_);
            data_ = larger;
        }
        data_[count_++] = value;
    }
    const T &operator[](std::size_t i) const
    {
        return data_[i];
    }

  private:
    T *data_ = nullptr;
    std::size_t count_ = 0, capacity_ = 0;
};

struct Node {
    long key;
    std::unique_ptr<Node> left, right;
};

class Tree
{
  public:
    void insert(long low, long high)
    {
        insert(root_, low, high);
    }

  private:
    static void insert(std::unique_ptr<Node> &at, long low, long high)
    {
        if (low > high)
            return;
        long middle = (low + high) / 2;
        at.reset(new Node{middle, nullptr, nullptr});
        insert(at->left, low, middle - 1);
        insert(at->right, middle + 1, high);
    }
    std::unique_ptr<Node> root_;
};

[[gnu::noinline]] static std::vector<std::string> make_names()
{
    std::vector<std::string> names;
    names.reserve(1000);
    for (int i = 0; i < 1000; i++)
        names.emplace_back(40, static_cast<char>('a' + i % 26));
    return names;
}

int main()
{
    Ring<int> ints;
    Ring<double> doubles;
    for (int i = 0; i < 512; i++) {
        ints.push(i);
        doubles.push(i / 2.0);
    }
    Tree tree;
    tree.insert(1, 127);
    std::vector<std::string> names = make_names();
    std::fprintf(stderr, "%d %.1f %s\n", ints[511], doubles[511], names[25].substr(0, 3).c_str());
    return 0;
}
