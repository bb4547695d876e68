//! What core gives every backend: ways to the device and back, and the cross-check of two.

use batchla_core::{Backend, Batch, BatchLayout, Error};
use batchla_testkit::{Generator, Order, Reference, cross_check};

#[test]
fn batches_of_every_order_go_to_the_device_and_back() -> Result<(), Error> {
    for order in Order::ALL {
        let layout = order.layout(6, 3, 2)?;
        let host = Batch::<f64>::from_fn(6, 3, 2, |b, i, j| (100 * b + 10 * i + j) as f64)?.to_layout(layout)?;
        let device = Reference.to_device(&host)?;
        assert_eq!(*device.layout(), layout.packed()?, "{order:?}");
        let back = Reference.to_host(&device)?;
        for (b, i, j) in (0..6).flat_map(|b| (0..3).flat_map(move |i| (0..2).map(move |j| (b, i, j)))) {
            assert_eq!(back.get(b, i, j), Some((100 * b + 10 * i + j) as f64), "{order:?}");
        }
    }
    Ok(())
}

#[test]
fn two_backends_that_agree_exempt_nothing_on_random_input() -> Result<(), Error> {
    let a = Generator::Normal.batch::<f32>(BatchLayout::column_major(500, 24, 24)?, 3)?;
    let agreement = cross_check(&Reference, &Reference, &a)?;
    assert!(agreement.holds() && agreement.exempt_share() == 0.0, "{agreement}");
    assert_eq!(agreement.matrices, 500);
    Ok(())
}
