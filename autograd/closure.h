// What record() knows of a closure before it runs.
#pragma once
#include <type_traits>
#include <utility>

namespace braid {

namespace detail {

template <class F>
struct Differentiable {
  F closure;
};
template <class F>
struct WithoutTensors : F {};

// Whether a closure may hold tensors: one that captures shapes and scalars alone is trivially destructible.
template <class F>
constexpr bool saves_tensors = !std::is_trivially_destructible_v<F>;
template <class F>
constexpr bool saves_tensors<WithoutTensors<F>> = false;
template <class F>
constexpr bool saves_tensors<Differentiable<F>> = saves_tensors<F>;
template <class F>
constexpr bool is_differentiable = false;
template <class F>
constexpr bool is_differentiable<Differentiable<F>> = true;

// What the engine knows of a closure before it runs.
struct ClosureTraits {
  bool saves;           // it holds tensors
  bool differentiable;  // marked as such
};
template <class F>
constexpr ClosureTraits traits = {saves_tensors<std::remove_cvref_t<F>>, is_differentiable<std::remove_cvref_t<F>>};

template <class F>
F&& closure_of(F&& f) {
  return std::forward<F>(f);
}
template <class F>
F closure_of(Differentiable<F>&& f) {
  return std::move(f.closure);
}

}  // namespace detail

// Marks a closure whose result can be differentiated again: it computes with ops that record, from dy and from the
// inputs as the op got them (not detached). Where a kernel is faster it may use it while recording() is false, which is
// so unless grad() was called with create_graph. A closure without this mark throws there: "no second derivative".
template <class F>
detail::Differentiable<std::remove_cvref_t<F>> differentiable(F&& closure) {
  return {std::forward<F>(closure)};
}

// Marks a closure that holds no tensor although it has a destructor, as one with a list of sizes does:
// differentiable(without_tensors([sizes](const Tensor& dy) -> Grads { ... })).
template <class F>
detail::WithoutTensors<std::remove_cvref_t<F>> without_tensors(F&& closure) {
  return {std::forward<F>(closure)};
}

}  // namespace braid
