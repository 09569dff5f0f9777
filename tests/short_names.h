/* Names of functions, how a table shows them where they are too wide (NULL: as the next), and how a sentence and the
 * page do: C++ as binutils and LLVM demangle it, Rust, Go, Python. ROW(name, bare, short) */
ROW("f", NULL, "f")
ROW("void f<int>(int)", NULL, "f")
ROW("std::vector<int, std::allocator<int> >::push_back(int const&)", NULL, "std::vector::push_back")
ROW("llvm::User::operator new(unsigned long, unsigned int, unsigned int)", NULL, "llvm::User::operator new")
ROW("operator new[](unsigned long, std::align_val_t)", NULL, "operator new[]")
ROW("A<B>::operator delete[](void*)", NULL, "A::operator delete[]")
ROW("operator delete(void*, unsigned long)", NULL, "operator delete")
ROW("A::operator()(int)", NULL, "A::operator()")
ROW("void A::operator()<int>(int) const", NULL, "A::operator()")
ROW("A::operator[](unsigned long) const", NULL, "A::operator[]")
ROW("std::ostream& std::operator<< <char>(std::ostream&, char)", NULL, "std::operator<<")
ROW("bool operator< <int>(A<int> const&, A<int> const&)", NULL, "operator<")
ROW("A::operator>>=(int)", NULL, "A::operator>>=")
ROW("A::operator<=>(A const&) const", NULL, "A::operator<=>")
ROW("P<int>::operator->() const", NULL, "P::operator->")
ROW("P<int>::operator->*(int)", NULL, "P::operator->*")
ROW("A::operator,(int)", NULL, "A::operator,")
ROW("A::operator bool() const", NULL, "A::operator bool")
ROW("A::operator unsigned long() const", NULL, "A::operator unsigned long")
ROW("A<B>::operator std::vector<int, C<int> >() const", NULL, "A::operator std::vector")
ROW("A::operator char const*() const", NULL, "A::operator char const*")
ROW("operator\"\" _kb(unsigned long long)", NULL, "operator\"\" _kb")
ROW("sort<&A::operator> >::run(int)", NULL, "sort::run")
ROW("operators(int)", NULL, "operators")
ROW("my_operator<int>(int)", NULL, "my_operator")
ROW("at::(anonymous namespace)::f", NULL, "at::(anonymous namespace)::f")
ROW("(anonymous namespace)::f(int)", NULL, "(anonymous namespace)::f")
ROW("a::(anonymous namespace)::b::(anonymous namespace)::f(a::(anonymous namespace)::T)", NULL,
    "a::(anonymous namespace)::b::(anonymous namespace)::f")
ROW("f<(anonymous namespace)::T>", NULL, "f")
ROW("node::(anonymous namespace)::CompressionStream<node::(anonymous namespace)::ZlibContext>::AllocForZlib(void*, "
    "unsigned int, unsigned int)",
    NULL, "node::(anonymous namespace)::CompressionStream::AllocForZlib")
ROW("std::function<void (int)>::operator()(int) const", NULL, "std::function::operator()")
ROW("decltype(auto) visit<int>(int)", NULL, "visit")
ROW("f.part.0 [a.c]", "f.part.0", "f.part.0 [a.c]")
ROW("std::map<int, A<int> > f<int>(int, char) [my parser.cpp]", "f", "f [my parser.cpp]")
ROW("f()::{lambda()#1}::operator()() const [a.cpp]", "f", "f::{lambda#1}::operator() [a.cpp]")
ROW("f(int)::{lambda(char)#1}::operator()(char) const", "f", "f::{lambda#1}::operator()")
ROW("A<B>::f(int) const::{lambda(char)#1}::operator()(char) const", "A::f", "A::f::{lambda#1}::operator()")
ROW("main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()", "main::{lambda#1}::operator()")
ROW("f(int)::<lambda(char)>", "f", "f::<lambda>")
ROW("std::thread::_State_impl<std::thread::_Invoker<std::tuple<main::{lambda()#1}> > >::_M_run()",
    "std::thread::_State_impl::_M_run", "std::thread::_State_impl<main::{lambda#1}>::_M_run")
ROW("void std::call<int, A<B>::f(C<D>) const::{lambda(int)#2}&&>(int, A<B>::f(C<D>) const::{lambda(int)#2}&&)",
    "std::call", "std::call<A::f::{lambda#2}>")
ROW("std::_Function_handler<int (), std::__future_base::_Task_setter<std::__future_base::_Task_state<(anonymous "
    "namespace)::go(int)::$_7, std::allocator<int>, int (int)>::_M_run(int&&)::{lambda()#1}, int> >::_M_invoke()",
    "std::_Function_handler::_M_invoke", "std::_Function_handler<(anonymous namespace)::go::$_7>::_M_invoke")
ROW("std::for_each<int*, std::__future_base::f()::{lambda()#1}>(int*)", NULL, "std::for_each")
ROW("each<main(int, char**)::<lambda(A<B>)>, f()::{lambda()#2}>(int)", "each", "each<main::<lambda>>")
ROW("g<f()::{lambda()#1}::operator()() const::{lambda(A*)#2} const*, f()::{lambda()#3}>::h<int>()", "g::h",
    "g<f::{lambda#1}::operator()::{lambda#2}>::h")
ROW("run<std::_Bind<A::operator<(A const&) const::{lambda(int)#1} (std::_Placeholder<1>)> >(int)", "run",
    "run<A::operator<::{lambda#1}>")
ROW("inner<outer<main::{lambda()#1}>(int)::{lambda()#2}>(char)", "inner", "inner<outer<main::{lambda#1}>::{lambda#2}>")
ROW("void at::kernel<at::native::vectorized::in_every_direction::copy_of_everything(at::Iterator&)::{lambda()#3}>()",
    "at::kernel", "at::kernel<in_every_direction::copy_of_everything::{lambda#3}>")
ROW("std::sys::backtrace::__rust_begin_short_backtrace::<app::main::{closure#0}, ()>",
    "std::sys::backtrace::__rust_begin_short_backtrace",
    "std::sys::backtrace::__rust_begin_short_backtrace<app::main::{closure#0}>")
ROW("<&mut app::main::{closure#1} as core::ops::function::FnOnce<()>>::call_once", NULL,
    "<&mut app::main::{closure#1} as core::ops::function::FnOnce>::call_once")
ROW("f[abi:cxx11](int)", NULL, "f[abi:cxx11]")
ROW("f [clone .cold]", NULL, "f")
ROW("f(int) [clone .cold]", NULL, "f")
ROW("std::panicking::catch_unwind::do_call::<std::rt::lang_start_internal::{closure#0}, isize>", NULL,
    "std::panicking::catch_unwind::do_call")
ROW("do_call::<&dyn core::ops::function::Fn<(), Output = i32> + core::marker::Sync, i32>", NULL, "do_call")
ROW("map::<u8, fn(u8) -> u32>::next", NULL, "map::next")
ROW("core::<impl Drop for Vec<T>>::drop", NULL, "core::<impl Drop for Vec>::drop")
ROW("<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop", NULL, "<alloc::vec::Vec as core::ops::drop::Drop>::drop")
ROW("core::ops::function::FnOnce::call_once{{vtable.shim}}", NULL,
    "core::ops::function::FnOnce::call_once{{vtable.shim}}")
ROW("main.(*Tree).Insert", NULL, "main.(*Tree).Insert")
ROW("load.<locals>.<listcomp>", NULL, "load.<locals>.<listcomp>")
ROW("<module>", NULL, "<module>")
ROW("<lambda>", NULL, "<lambda>")
ROW("_ZN4demo12345678901234567890123456789012345678901234567890123456789012345678901234567890Ev",
    "_ZN4demo12345678901234567890123456789012345678901234567890123456789012345678901234567890Ev",
    "_ZN4demo1234567890123456789012345678901..4567890123456789012345678901234567890Ev")
ROW("a_rule_of_ten_thousand__thousand__thousand__thousand__thousand__thousand__thousand__thousand__thousa"
    "nd__thousand__thousand__thousand__thousand__thousand__thousand_",
    "a_rule_of_ten_thousand__thousand__thousand__thousand__thousand__thousand__thousand__thousand__thousa"
    "nd__thousand__thousand__thousand__thousand__thousand__thousand_",
    "a_rule_of_ten_thousand__thousand__thous..thousand__thousand__thousand__thousand_")
ROW("ns::xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    NULL,
    "ns::xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")
ROW("box<int>::put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_pu"
    "t_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_",
    "box::put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put"
    "_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_put_",
    "box::put_put_put_put_put_put_put_put_pu..ut_put_put_put_put_put_put_put_put_put_")
