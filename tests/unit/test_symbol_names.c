/* Names of functions: plain and demangled, cut and bounded, and which are of the allocator family. */
#include "../../common/buf.h"
#include "../../profiler/symbols/allocator.h"
#include "../../profiler/symbols/demangle.h"
#include "../../profiler/symbols/symbols.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static const struct {
    const char *name, *plain;
} plain_names[] = {
    {"main", "main"},
    {"a::b<int>::c(char) const", "c"},
    {"std::vector<int, std::allocator<int> >::push_back(int const&)", "push_back"},
    {"int foo<int>(int)", "foo"},
    {"std::enable_if<((1)>(2)), int>::type ns::f<int>(int)", "f"},
    {"(anonymous namespace)::helper(int)", "helper"},
    {"ns::(anonymous namespace)::T::m()", "m"},
    {"operator new(unsigned long)", "operator new"},
    {"operator new[](unsigned long)", "operator new[]"},
    {"A::operator()(int) const", "operator()"},
    {"A::operator[](int)", "operator[]"},
    {"A::operator->() const", "operator->"},
    {"A::operator bool() const", "operator bool"},
    {"A::operator std::string() const", "operator std::string"},
    {"std::ostream& std::operator<< <char>(std::ostream&, char)", "operator<<"},
    {"bool operator< <int>(A<int> const&)", "operator<"},
    {"bool operator<=>(A, A)", "operator<=>"},
    {"operator\"\" _kb(unsigned long long)", "operator\"\" _kb"},
    {"operators::run()", "run"},
    {"app::work(int)::{lambda(int)#1}::operator()(int) const", "operator()"},
    {"app::work(int)::Helper::go(int)", "go"},
    {"app::work(int) const::Helper::go(int)", "go"},
    {"app::get[abi:cxx11](int)", "get"},
    {"std::function<void (int)>::operator()(int) const", "operator()"},
    {"std::_Function_handler<void (int), f(A&)::{lambda()#1}>::_M_invoke(std::_Any_data const&)", "_M_invoke"},
    {"A::~A()", "~A"},
    {"non-virtual thunk to A::f()", "f"},
    {"foo() [clone .cold]", "foo"},
    {"foo.constprop.0", "foo"},
    {"foo.part.3.cold", "foo"},
    {"malloc@@GLIBC_2.2.5", "malloc"},
    {"alloc::vec::Vec<T,A>::push", "push"},
    {"<alloc::vec::Vec<T> as core::ops::Drop>::drop", "drop"},
    {"<T as core::convert::Into<U>>::into", "into"},
    {"app::main::{{closure}}", "{{closure}}"},
    {"<alloc::raw_vec::RawVecInner>::reserve::do_it::<alloc::alloc::Global>", "do_it"},
    {"a::b::<u8>::c", "c"},
    {"core::ptr::drop_in_place<alloc::string::String>", "drop_in_place"},
    {"decltype(auto) f(int)", "f"},
    {"py::forward:/home/u/net.py", "forward"},
    {"", ""},
    {"<", "<"},
    {"a<b", "a"},
    {"f(", "f"},
    {"::", "::"},
    {"operator", "operator"},
    {"(((((", "((((("},
};

static void test_plain_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof plain_names / sizeof *plain_names; i++) {
        char *plain = symbols_plain_name(plain_names[i].name);
        if (strcmp(plain, plain_names[i].plain))
            fail_msg("'%s': '%s', not '%s'", plain_names[i].name, plain, plain_names[i].plain);
        free(plain);
    }
}

static const struct {
    const char *raw, *name; /* NULL: not mangled */
} mangled_names[] = {
    {"main", NULL},
    {"_Z3fooi", "foo(int)"},
    {"__Z3fooi", "foo(int)"},
    {"_ZN3app4workEi", "app::work(int)"},
    {"_Znwm", "operator new(unsigned long)"},
    {"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back(int const&)"},
    {"_ZN12_GLOBAL__N_11fEv", "(anonymous namespace)::f()"},
    {"_Z3foov.cold", "foo() [clone .cold]"},
    {"_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE", "core::fmt::Formatter::write_str"},
    {"_RNvC6_123foo3bar", "123foo::bar"},
    {"_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"},
    {"_Z", NULL},
    {"_ZNgarbage", NULL},
    {"_R", NULL},
};

static void test_demangling(void **state)
{
    (void)state;
    char name[DEMANGLE_MAX];
    for (size_t i = 0; i < sizeof mangled_names / sizeof *mangled_names; i++) {
        int rc = demangle_name(mangled_names[i].raw, name);
        if ((rc == 0) != (mangled_names[i].name != NULL) || (rc == 0 && strcmp(name, mangled_names[i].name)))
            fail_msg("'%s': '%s'", mangled_names[i].raw, rc ? "(not mangled)" : name);
    }
}

static void test_long_names_are_cut(void **state)
{
    (void)state;
    /* f(A, A, ...): substitutions make the readable form far longer than the raw one */
    struct buf raw = BUF(65536);
    buf_printf(&raw, "_Z1fN3foo200%0200dE", 0);
    raw.data[12] = 'a'; /* a name does not begin with a digit */
    for (int i = 0; i < 100; i++)
        buf_puts(&raw, "S0_");
    char *name = malloc(DEMANGLE_MAX);
    assert_int_equal(demangle_name(raw.data, name), 0);
    assert_true(strlen(name) < DEMANGLE_MAX);
    assert_string_equal(name + strlen(name) - 3, "...");
    for (int i = 0; i < 3000; i++)
        buf_puts(&raw, "S0_");
    assert_int_equal(demangle_name(raw.data, name), -ENOENT); /* longer than we hand to the demangler */
    free(name);
    buf_free(&raw);
}

/* From 1,024 bytes on, of which libiberty has a limit: f(abcdefghijklmnopqrst, ..., int, ...), and references to a
 * template's argument. */
static void test_long_names_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *raw, *name, *again, *argument;
        int count, int_count, length;
    } names[] = {
        {"_Z1f", "f(", "20abcdefghijklmnopqrst", "abcdefghijklmnopqrst", 46, 7, 1023},
        {"_Z1f", "f(", "20abcdefghijklmnopqrst", "abcdefghijklmnopqrst", 46, 8, 1024},
        {"_Z1f", "f(", "20abcdefghijklmnopqrst", "abcdefghijklmnopqrst", 370, 40, 8184},
        {"_Z1fIiEv", "void f<int>(", "RT_", "int&", 500, 1, 1509},
    };
    char *name = malloc(DEMANGLE_MAX);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct buf raw = BUF(65536), expected = BUF(65536);
        buf_puts(&raw, names[i].raw);
        buf_puts(&expected, names[i].name);
        for (int k = 0; k < names[i].count + names[i].int_count; k++) {
            int is_int = k >= names[i].count;
            buf_puts(&raw, is_int ? "i" : names[i].again);
            buf_printf(&expected, "%s%s", k ? ", " : "", is_int ? "int" : names[i].argument);
        }
        buf_puts(&expected, ")");
        assert_int_equal(raw.length, names[i].length);
        assert_int_equal(demangle_name(raw.data, name), 0);
        assert_string_equal(name, expected.data);
        buf_free(&raw);
        buf_free(&expected);
    }
    free(name);
}

/* Nor does what takes much of the stack end it: each of many templates with each of many references; many pointers. */
static void test_deep_names_end(void **state)
{
    (void)state;
    struct buf raw = BUF(65536);
    char *name = malloc(DEMANGLE_MAX);
    buf_puts(&raw, "_Z1fIiEv");
    for (int i = 0; i < 1360; i++)
        buf_puts(&raw, "RT_");
    for (int i = 0; i < 1020; i++)
        buf_puts(&raw, "SaIE");
    assert_true(raw.length < 8192);
    demangle_name(raw.data, name);
    buf_reset(&raw);
    buf_puts(&raw, "_Z1f");
    for (int i = 0; i < 8000; i++)
        buf_puts(&raw, "P");
    buf_puts(&raw, "i");
    demangle_name(raw.data, name);
    assert_int_equal(demangle_name("_Z3fooi", name), 0);
    free(name);
    buf_free(&raw);
}

static double processor_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void assert_bounded(const char *raw)
{
    char *name = malloc(DEMANGLE_MAX);
    double begin_s = processor_s();
    assert_int_equal(demangle_name(raw, name), -ENOENT);
    assert_true(processor_s() - begin_s < 1);
    free(name);
}

/* S_: pair, S0_: pair<int, int>, S1_: pair<S0_, S0_>, and so on: each has twice the parts of the one before. */
static void add_doubling_types(struct buf *raw, int count)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    buf_puts(raw, "St4pairIiiE");
    for (int i = 0; i < count; i++)
        buf_printf(raw, "S_IS%c_S%c_E", digits[i], digits[i]);
}

static void test_demangling_is_bounded(void **state)
{
    (void)state;
    struct buf raw = BUF(65536);
    buf_puts(&raw, "_Z4bomb");
    add_doubling_types(&raw, 36);
    assert_bounded(raw.data);
    /* a pack expansion is searched for its pack before a word is said */
    buf_reset(&raw);
    buf_puts(&raw, "_Z4bombDpFv");
    add_doubling_types(&raw, 36);
    buf_puts(&raw, "E");
    assert_bounded(raw.data);
    buf_free(&raw);
    assert_bounded("_RMC1aFGzzzzzzzzzz_EuC1b");  /* for<'a, 'b, ...> with 62^10 lifetimes */
    assert_bounded("_RC1aIC1bFGzzzzzzzzzz_EuE"); /* the same in the part that is not printed */
    char name[DEMANGLE_MAX];
    assert_int_equal(demangle_name("_Z3fooi", name), 0); /* goes on working */
    assert_string_equal(name, "foo(int)");
}

static void test_allocator_family(void **state)
{
    (void)state;
    static const char *const members[][2] = {
        {"malloc", "malloc"},
        {"calloc@@GLIBC_2.2.5", "calloc@@GLIBC_2.2.5"},
        {"_Znwm", "operator new(unsigned long)"},
        {"_ZnamSt11align_val_t", "operator new[](unsigned long, std::align_val_t)"},
        {"_ZNSt15__new_allocatorIiE8allocateEmPKv", "std::__new_allocator<int>::allocate(unsigned long, void const*)"},
        {"_ZN9__gnu_cxx13new_allocatorIiE8allocateEmPKv",
         "__gnu_cxx::new_allocator<int>::allocate(unsigned long, void const*)"},
        {"_ZNSt16allocator_traitsISaIiEE8allocateERS0_m",
         "std::allocator_traits<std::allocator<int> >::allocate(std::allocator<int>&, unsigned long)"},
        {"_ZNSt12_Vector_baseIiSaIiEE11_M_allocateEm",
         "std::_Vector_base<int, std::allocator<int> >::_M_allocate(unsigned long)"},
        {"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back(int const&)"},
        {"_ZNSt6vectorIiSaIiEE17_M_realloc_insertIJiEEEvv",
         "void std::vector<int, std::allocator<int> >::_M_realloc_insert<int>(int&&)"},
        {"_Za", "std::vector<f()::{lambda()#1}, std::allocator<f()::{lambda()#1}> >::reserve(unsigned long)"},
        /* callables of the library itself */
        {"_Za", "std::_Function_handler<bool (char), std::__detail::_BracketMatcher<std::__cxx11::regex_traits<char>, "
                "false, false> >::_M_invoke(std::_Any_data const&, char&&)"},
        {"_Za", "std::_Function_handler<std::unique_ptr<std::__future_base::_Result_base, "
                "std::__future_base::_Result_base::_Deleter> (), std::__future_base::_State_baseV2::_Setter<int, int "
                "const&> >::_M_invoke(std::_Any_data const&)"},
        {"_RNvMs_NtC5alloc3vecINtB4_3VecpE4push", "<alloc::vec::Vec<_>>::push"},
        {"strdup", "strdup"},
        {"g_malloc0", "g_malloc0"},
        {"_ZN5alloc5alloc15exchange_malloc17h0123456789abcdefE", "alloc::alloc::exchange_malloc"},
        {"_ZN5alloc7raw_vec20RawVecInner$LT$A$GT$11finish_grow17h0123456789abcdefE.llvm.10910578806376921899",
         "alloc::raw_vec::RawVecInner<A>::finish_grow"},
        /* implementations for types of no crate */
        {"_ZN1a17h0123456789abcdefE", "<u8 as alloc::vec::spec_from_elem::SpecFromElem>::from_elem"},
        {"_ZN1a17h0123456789abcdefE", "<T as core::convert::Into<U>>::into"},
        {"_ZN1a17h0123456789abcdefE", "<&[u8] as core::convert::Into<alloc::vec::Vec<u8>>>::into::{{closure}}"},
        {"_ZN1a17h0123456789abcdefE", "<fn() -> u8 as core::ops::function::FnOnce<()>>::call_once"},
        {"_RXa", "<u8 as <[_]>::to_vec_in::ConvertVec>::to_vec::<alloc::alloc::Global>"},
        {"_RXa", "<[u8]>::to_vec_in::<my::Alloc>"},
        {"_RXa", "<alloc::vec::Vec<my::Type> as core::ops::drop::Drop>::drop"},
        {"_RXa", "<alloc::vec::Vec<<my::Type as my::Trait>::Item>>::push"},
        {"_RXa", "<alloc::vec::Vec<u8> as alloc::vec::spec_extend::SpecExtend<u8, my::Iter>>::spec_extend"},
        {"_RXa", "<&str as core::ops::function::FnOnce<(&str,), Output = i32>>::call_once"},
    };
    static const char *const others[][2] = {
        {"xmalloc", "xmalloc"},
        {"malloc_trim", "malloc_trim"},
        {"mallo", "mallo"},
        {"", ""},
        {"_ZN4pool8allocateEm", "pool::allocate(unsigned long)"},
        {"_ZN1AnwEm", "A::operator new(unsigned long)"},
        {"_ZN3app4joinIiEESsT_", "std::string app::join<int>(int)"},
        {"_ZN3app1fESt6vectorIiSaIiEE", "app::f(std::vector<int, std::allocator<int> >)"},
        {"_ZN5alloc4poolEv", "alloc::pool()"},
        {"_ZN5mycrate4core17h0123456789abcdefE", "mycrate::core"},
        /* traits of the libraries that a program implements, and its own for their types */
        {"_ZN1a17h0123456789abcdefE", "<my::Type as core::clone::Clone>::clone"},
        {"_ZN1a17h0123456789abcdefE", "<&my::Type as core::ops::arith::Add>::add"},
        {"_ZN1a17h0123456789abcdefE", "<u8 as my::core::Trait>::f"},
        {"_ZN1a17h0123456789abcdefE", "<T as my::Trait>::f"},
        {"_ZN1a17h0123456789abcdefE", "<alloc::vec::Vec<u8> as my::Trait>::f"},
        {"_RXa", "<alloc::vec::Vec<fn() -> <u8 as core::ops::Not>::Output> as my::Trait<u8>>::f::{closure#0}"},
        {"_RXa", "<std::collections::hash::map::HashMap<u8, my::Type> as corelib::Trait>::f"},
        {"_ZN1a17h0123456789abcdefE", "<f64 as core::ops::arith::Mul<my::Vector>>::mul"},
        {"_ZN1a17h0123456789abcdefE", "<u8 as corelib::Trait>::f"},
        {"_ZN1a17h0123456789abcdefE", "<u8 as core::clone::Clone"},
        {"_ZN1aE", "<u8 as core::clone::Clone>::clone"},
        {"operator new(unsigned long)", "operator new(unsigned long)"},
    };
    /* what the program's callable is inlined into, where nothing says where it is declared */
    static const char *const instances[] = {
        "std::_Function_handler<void (int), main::{lambda(int)#3}>::_M_invoke(std::_Any_data const&, int&&)",
        "std::_Function_handler<std::unique_ptr<std::__future_base::_Result_base, "
        "std::__future_base::_Result_base::_Deleter> (), "
        "std::__future_base::_Task_setter<std::unique_ptr<std::__future_"
        "base::_Result<int>, std::__future_base::_Result_base::_Deleter>, "
        "std::thread::_Invoker<std::tuple<main::{lambda("
        "int)#5}, int> >, int> >::_M_invoke(std::_Any_data const&)",
        "std::thread::_State_impl<std::thread::_Invoker<std::tuple<main::{lambda()#1}> > >::_M_run() [clone .cold]",
        "void std::move_only_function<void ()>::_S_invoke<main::{lambda()#1}>(std::_Mofunc_base*)",
        "std::__1::__function::__func<main::$_1, std::__1::allocator<main::$_1>, void (int)>::operator()(int&&)",
        "std::__1::__function::__func<Work, std::__1::allocator<Work>, void ()>::operator()[abi:v160006]()",
        "void std::__1::__function::__policy_invoker<void "
        "(int)>::__call_impl<std::__1::__function::__default_alloc_func<"
        "main::$_1, void (int)> >(std::__1::__function::__policy_storage const*, int)",
        "std::__1::__packaged_task_func<main::$_4, std::__1::allocator<main::$_4>, int (int)>::operator()(int&&)",
        "std::__1::__async_assoc_state<int, std::__1::__async_func<main::$_2, int> >::__execute()",
        "std::__1::__deferred_assoc_state<int, std::__1::__async_func<main::$_3, int> >::__execute()",
        "void* std::__1::__thread_proxy<std::__1::tuple<main::$_0> >(void*)",
        "void* std::__1::__thread_proxy[abi:v160006]<std::__1::tuple<main::$_0> >(void*)",
    };
    for (size_t i = 0; i < sizeof instances / sizeof *instances; i++) {
        if (allocator_is_function("_Za", instances[i], NULL))
            fail_msg("'%s' is taken for an allocator", instances[i]);
        assert_int_equal(allocator_is_function("_Za", instances[i], "/usr/include/c++/12/bits/std_function.h"), 1);
    }
    /* what a thread of Rust runs; as v0 and the legacy scheme name it */
    assert_int_equal(
        allocator_is_function("_RXa", "std::sys::backtrace::__rust_begin_short_backtrace::<app::main::{closure#0}, ()>",
                              NULL),
        0);
    assert_int_equal(allocator_is_function("_ZN1a17h0123456789abcdefE",
                                           "std::sys_common::backtrace::__rust_begin_short_backtrace", NULL),
                     0);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (!allocator_is_function(members[i][0], members[i][1], NULL))
            fail_msg("'%s' is not taken for an allocator", members[i][1]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (allocator_is_function(others[i][0], others[i][1], "/src/app.cpp"))
            fail_msg("'%s' is taken for an allocator", others[i][1]);
    assert_int_equal(allocator_is_function(NULL, NULL, NULL), 0);
    assert_int_equal(allocator_is_function("_M_create<app::f()::X>", "_M_create<app::f()::X>",
                                           "/usr/include/c++/12/bits/std_function.h"),
                     1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_names),        cmocka_unit_test(test_demangling),
        cmocka_unit_test(test_long_names_are_cut), cmocka_unit_test(test_long_names_are_read),
        cmocka_unit_test(test_deep_names_end),     cmocka_unit_test(test_demangling_is_bounded),
        cmocka_unit_test(test_allocator_family),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
