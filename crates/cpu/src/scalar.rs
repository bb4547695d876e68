//! What is computed with single numbers.

use batchla_core::Scalar;
use num_traits::Float;

/// `1 / x`: for complex numbers far from the ends of the range by way of the square of the modulus.
#[inline(always)]
pub(crate) fn reciprocal<T: Scalar>(x: T) -> T {
    if is_moderate(x) {
        let scale = x.im().mul_add(x.im(), x.re() * x.re()).recip();
        T::from_parts(x.re() * scale, -x.im() * scale)
    } else {
        num_traits::one::<T>().divide(x)
    }
}

/// `x / divisor`: of complex numbers by the reciprocal, where that keeps clear of overflow and underflow.
pub(crate) fn over<T: Scalar>(x: T, divisor: T) -> T {
    if !is_moderate(divisor) {
        return x.divide(divisor);
    }
    let r = reciprocal(divisor);
    T::from_parts((-x.im()).mul_add(r.im(), x.re() * r.re()), x.re().mul_add(r.im(), x.im() * r.re()))
}

/// Whether a complex number's modulus can be squared.
fn is_moderate<T: Scalar>(x: T) -> bool {
    let (size, least) = (x.abs1(), T::SAFE_MINIMUM.sqrt());
    T::IS_COMPLEX && size > least && size < least.recip()
}
