//! The conformance suite on a real GPU. Without one every test says `skipped` and why; `BATCHLA_REQUIRE=cuda` makes that a failure.
#![cfg(feature = "driver")]

use std::sync::{Mutex, PoisonError};

use batchla_core::{Complex, Error, Options};
use batchla_cuda::{Cuda, Device};
use batchla_testkit::{Scope, conformance};

/// One device for all tests, a stream for each.
fn gpu() -> Result<Cuda, Error> {
    static DEVICE: Mutex<Option<Device>> = Mutex::new(None);
    let mut device = DEVICE.lock().unwrap_or_else(PoisonError::into_inner);
    if device.is_none() {
        *device = Some(Device::open(0)?);
    }
    device.as_ref().map_or_else(Cuda::new, Cuda::on)
}

conformance!(cuda_f32, f32, Scope::FULL, gpu());
conformance!(cuda_f64, f64, Scope::FULL, gpu());
conformance!(cuda_c32, Complex<f32>, Scope::FULL, gpu());
conformance!(cuda_c64, Complex<f64>, Scope::FULL, gpu());

/// Forces every family of plans on every check, at the orders where warps and panels begin and end.
macro_rules! forced {
    ($($module:ident $plan:literal;)*) => {$(
        mod $module {
            use super::*;

            conformance!(cuda_f32, f32, Scope::QUICK, gpu(), Options::default().with_plan($plan));
            conformance!(cuda_f64, f64, Scope::QUICK, gpu(), Options::default().with_plan($plan));
            conformance!(cuda_c32, Complex<f32>, Scope::QUICK, gpu(), Options::default().with_plan($plan));
            conformance!(cuda_c64, Complex<f64>, Scope::QUICK, gpu(), Options::default().with_plan($plan));
        }
    )*};
}

forced! {
    left_looking "left-looking";
    resident "resident:exact=0";
    spread "spread";
    blocked "blocked:width=16,panel=8";
    strips_together "blocked:width=16,together=2,panel=8,finish=0";
    resident_helpers "resident:panel=4,helpers=2,exact=0";
    resident_windows "resident:panel=8,window=16,helpers=1,exact=0";
    inverse_by_parts "resident:inverse-window=16,inverse-parts=4,exact=0";
    inverse_copies "resident:inverse-window=8,inverse-copies=2,exact=0";
    shared_panel "shared-panel";
    tree_search "tree-search";
    interchange_serial "interchange-serial";
    interchange_grouped "interchange-grouped";
    right_looking "right-looking";
    multi_kernel "multi-kernel";
    multi_kernel_interchange "multi-kernel-interchange";
    multi_kernel_blocked "multi-kernel-blocked";
    multi_kernel_batched "multi-kernel-batched";
    multi_kernel_two_level "multi-kernel-two-level:width=16,together=2";
    timely "timely";
    static_resources "static";
    dynamic_resources "dynamic";
    wide_panel "left-looking:panel=14,inverse-block=20";
    two_rows "left-looking:panel=4,rows=2,inverse-rows=2,inverse-block=5";
    streamed_through_registers "left-looking:stages=0,ahead=2,panel=4";
    nine_warps "left-looking:rows=1,threads=288";
}

/// Panels streamed and updated by matrix instructions, which the planner takes at larger orders.
const BY_INSTRUCTIONS: &str = "left-looking:tensor=1,panel=8,rows=2,threads=128,stages=2";

mod streamed_by_instructions {
    use super::*;

    conformance!(cuda_f64, f64, Scope::QUICK, gpu(), Options::default().with_plan(BY_INSTRUCTIONS));
    conformance!(cuda_c64, Complex<f64>, Scope::QUICK, gpu(), Options::default().with_plan(BY_INSTRUCTIONS));
}

/// Few and small matrices, for memory and race checkers, under which a kernel takes a hundred times as long.
mod sanitized {
    use super::*;

    const SCOPE: Scope =
        Scope { name: "sanitized", orders: &[1, 2, 5, 17, 33, 65], thorough: 5, many: None, huge: None };

    conformance!(cuda_f32, f32, SCOPE, gpu());
    conformance!(cuda_f64, f64, SCOPE, gpu());
    conformance!(cuda_c32, Complex<f32>, SCOPE, gpu());
    conformance!(cuda_c64, Complex<f64>, SCOPE, gpu());
    conformance!(cuda_left_looking, f64, SCOPE, gpu(), Options::default().with_plan("left-looking"));
    conformance!(cuda_spread, f64, SCOPE, gpu(), Options::default().with_plan("spread"));
    conformance!(cuda_blocked, f64, SCOPE, gpu(), Options::default().with_plan("blocked:width=16,panel=8"));
    conformance!(cuda_tree_search, f64, SCOPE, gpu(), Options::default().with_plan("tree-search"));
    conformance!(cuda_right_looking, f64, SCOPE, gpu(), Options::default().with_plan("right-looking"));
    conformance!(
        cuda_by_steps,
        f64,
        SCOPE,
        gpu(),
        Options::default().with_plan("multi-kernel-two-level:width=16,together=2")
    );
    conformance!(cuda_timely, f64, SCOPE, gpu(), Options::default().with_plan("timely"));
    conformance!(cuda_by_instructions, f64, SCOPE, gpu(), Options::default().with_plan(BY_INSTRUCTIONS));
    conformance!(cuda_nine_warps, f64, SCOPE, gpu(), Options::default().with_plan("left-looking:rows=1,threads=288"));
}
