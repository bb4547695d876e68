//! The real use: a block-Jacobi preconditioner for a discontinuous Galerkin operator.
//!
//! `examples/data` holds the element blocks of a local-discontinuous-Galerkin diffusion operator. The operator solved here
//! has those blocks, scaled as on a mesh that is refined a hundredfold from one end to the other, and a penalty on the jumps between
//! neighbouring elements (the file holds no coupling, so this one is a stand-in). Conjugate gradients need many
//! steps for it; with every block inverted beforehand in one call, a few.

use batchla::{Batch, BatchedInvert, Error};

const PENALTY: f64 = 2.0;

/// `y = A x`: the blocks, and the jump penalty between element e and e + 1.
fn apply(blocks: &Batch<f64>, x: &[f64]) -> Vec<f64> {
    let n = blocks.layout().rows();
    let mut y = vec![0.0; x.len()];
    for (e, block) in blocks.view().matrices().enumerate() {
        for i in 0..n {
            y[e * n + i] += (0..n).map(|j| block.at(i, j) * x[e * n + j]).sum::<f64>();
        }
    }
    for k in n..x.len() {
        let jump = PENALTY * (x[k] - x[k - n]);
        y[k] += jump;
        y[k - n] -= jump;
    }
    y
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// Conjugate gradients for `A x = b`, preconditioned by `precondition`: the solution and the steps taken.
fn solve(blocks: &Batch<f64>, b: &[f64], precondition: impl Fn(&[f64]) -> Vec<f64>) -> (Vec<f64>, usize) {
    let (mut x, mut r) = (vec![0.0; b.len()], b.to_vec());
    let mut z = precondition(&r);
    let (mut p, mut rz) = (z.clone(), dot(&r, &z));
    for step in 1..10_000 {
        let ap = apply(blocks, &p);
        let alpha = rz / dot(&p, &ap);
        x.iter_mut().zip(&p).for_each(|(x, p)| *x += alpha * p);
        r.iter_mut().zip(&ap).for_each(|(r, ap)| *r -= alpha * ap);
        if dot(&r, &r) <= 1e-20 * dot(b, b) {
            return (x, step);
        }
        z = precondition(&r);
        let beta = dot(&r, &z) / std::mem::replace(&mut rz, dot(&r, &z));
        p.iter_mut().zip(&z).for_each(|(p, z)| *p = z + beta * *p);
    }
    (x, 10_000)
}

fn main() -> Result<(), Error> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/ldg_blocks_46x21x21_f64.npy");
    let blocks = batchla::npy::read::<f64>(file)?;
    let (elements, n) = (blocks.batch(), blocks.layout().rows());
    let refined = |e: usize| 1e4f64.powf(e as f64 / (elements - 1) as f64);
    let blocks = Batch::from_fn(elements, n, n, |e, i, j| refined(e) * blocks.get(e, i, j).unwrap_or(f64::NAN))?;

    // Set-up of the preconditioner: the diagonal blocks of A, penalty included, inverted in one call.
    let neighbours = |e: usize| if e == 0 || e == elements - 1 { 1.0 } else { 2.0 };
    let diagonal = Batch::from_fn(elements, n, n, |e, i, j| {
        blocks.get(e, i, j).unwrap_or(f64::NAN) + if i == j { PENALTY * neighbours(e) } else { 0.0 }
    })?;
    let inverse = batchla::auto()?.invert(&diagonal)?;
    assert!(inverse.report.all_regular());

    let b: Vec<f64> = (0..elements * n).map(|k| ((k * k) % 17) as f64 - 8.0).collect();
    let (_, plain) = solve(&blocks, &b, <[f64]>::to_vec);
    let (x, preconditioned) = solve(&blocks, &b, |r| {
        let apply_one = |(e, x): (usize, batchla::MatrixRef<'_, f64>)| {
            (0..n).map(|i| (0..n).map(|j| x.at(i, j) * r[e * n + j]).sum::<f64>()).collect::<Vec<_>>()
        };
        inverse.batch.view().matrices().enumerate().flat_map(apply_one).collect()
    });

    let residual: Vec<f64> = apply(&blocks, &x).iter().zip(&b).map(|(ax, b)| ax - b).collect();
    let relative = (dot(&residual, &residual) / dot(&b, &b)).sqrt();
    println!("{elements} element blocks of order {n}: {plain} steps without, {preconditioned} with block Jacobi");
    println!("relative residual {relative:.1e}");
    assert!(relative < 1e-9 && preconditioned * 5 < plain);
    Ok(())
}
