//! A figure as SVG, and as PNG where the machine has fonts: four panels, one a type, speed over order.

use std::path::{Path, PathBuf};

use batchla_core::{Error, ErrorKind, ScalarKind};
use plotters::coord::Shift;
use plotters::prelude::*;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::FaceInfo;
use resvg::usvg::{Options, Tree};

use crate::figure::{Figure, Shows};
use crate::results::Results;

const SIZE: (u32, u32) = (1200, 900);
/// Told apart also by those who do not see all colours (Okabe, Ito 2002).
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(0, 0, 0),
];

/// Points of a curve, and how it is called.
type Curve = (String, Vec<(f64, f64)>);

/// Draws a figure into a folder; none where nothing of it was measured.
///
/// # Errors
/// [`ErrorKind::Io`].
pub fn draw(figure: &Figure, results: &Results, folder: &Path) -> Result<Option<PathBuf>, Error> {
    let scalars = results.scalars(figure.name);
    if scalars.is_empty() {
        return Ok(None);
    }
    let path = folder.join(format!("figure-{}.svg", figure.name));
    paint(figure, results, &scalars, &path).map_err(|error| {
        Error::new(ErrorKind::Io, "draw", format!("{} cannot be drawn: {error}", path.display()))
            .advise("name another folder with --output")
    })?;
    png(&path)?;
    Ok(Some(path))
}

/// The same drawing as PNG beside it; none where there are no fonts to write with.
fn png(svg: &Path) -> Result<Option<PathBuf>, Error> {
    let fault = |error: &dyn std::fmt::Display| {
        Error::new(ErrorKind::Io, "draw", format!("{} cannot be drawn as PNG: {error}", svg.display()))
            .advise("name another folder with --output")
    };
    let mut options = Options::default();
    options.fontdb_mut().load_system_fonts();
    let plain = |face: &&FaceInfo| face.families.iter().any(|(name, _)| name.contains("Sans"));
    let faces: Vec<&FaceInfo> = options.fontdb.faces().collect();
    let face = faces.iter().copied().find(plain).or(faces.first().copied());
    let Some(family) = face.and_then(|face| face.families.first()).map(|(name, _)| name.clone()) else {
        return Ok(None);
    };
    options.fontdb_mut().set_sans_serif_family(family);
    let text = std::fs::read_to_string(svg).map_err(|e| fault(&e))?;
    let tree = Tree::from_str(&text, &options).map_err(|e| fault(&e))?;
    let mut pixels = Pixmap::new(SIZE.0, SIZE.1).ok_or_else(|| fault(&"it has no size"))?;
    resvg::render(&tree, Transform::identity(), &mut pixels.as_mut());
    let path = svg.with_extension("png");
    pixels.save_png(&path).map_err(|e| fault(&e))?;
    Ok(Some(path))
}

fn paint(
    figure: &Figure,
    results: &Results,
    scalars: &[ScalarKind],
    path: &Path,
) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::new(path, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let title = if figure.name.parse::<u32>().is_ok() {
        format!("Figure {}: {}", figure.name, figure.title)
    } else {
        figure.title.clone()
    };
    let below = root.titled(&title, ("sans-serif", 28))?;
    let panels = if scalars.len() == 1 { (1, 1) } else { (2, 2) };
    for (area, &scalar) in below.split_evenly(panels).iter().zip(scalars) {
        panel(area, figure, scalar, &curves(figure, results, scalar))?;
    }
    root.present()?;
    Ok(())
}

fn curves(figure: &Figure, results: &Results, scalar: ScalarKind) -> Vec<Curve> {
    let orders = results.orders(figure.name, scalar);
    let curve = |label: &String| {
        let height = |&n: &usize| {
            let row = results.best(figure.name, scalar, label, n)?;
            let height = match figure.shows {
                Shows::Speed => Some(row.timing.gflops),
                Shows::Time => Some(1e3 * row.timing.median_ms / row.batch as f64),
                Shows::Speedup | Shows::Share => row.speedup,
            };
            Some((n as f64, height?))
        };
        (label.clone(), orders.iter().filter_map(height).collect::<Vec<_>>())
    };
    figure.series.iter().map(|series| curve(&series.label)).filter(|(_, points)| !points.is_empty()).collect()
}

fn panel(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    figure: &Figure,
    scalar: ScalarKind,
    curves: &[Curve],
) -> Result<(), Box<dyn std::error::Error>> {
    let points = || curves.iter().flat_map(|(_, points)| points);
    let (left, right) = points().fold((f64::INFINITY, 0.0f64), |(a, b), (x, _)| (a.min(*x), b.max(*x)));
    let top = points().fold(0.0f64, |top, (_, y)| top.max(*y)).max(match figure.shows {
        Shows::Share => 0.1,
        Shows::Time => 1e-3,
        Shows::Speed | Shows::Speedup => 1.0,
    });
    if left > right {
        return Ok(());
    }
    let mut chart = ChartBuilder::on(area)
        .caption(scalar.name(), ("sans-serif", 22))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d(left - 4.0..right + 4.0, 0.0..1.08 * top)?;
    let height = figure.shows.words();
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .label_style(("sans-serif", 16))
        .axis_desc_style(("sans-serif", 17))
        .x_desc("order n")
        .y_desc(height)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| match figure.shows {
            Shows::Speed => format!("{y:.0}"),
            Shows::Time => format!("{y:.3}"),
            Shows::Speedup => format!("{y:.1}"),
            Shows::Share => format!("{:.0} %", 100.0 * y),
        })
        .draw()?;
    for ((label, points), colour) in curves.iter().zip(COLOURS.iter().cycle().copied()) {
        let drawn = chart.draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)))?;
        drawn
            .label(label.as_str())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
        chart.draw_series(points.iter().map(|point| Circle::new(*point, 3, colour.filled())))?;
    }
    chart
        .configure_series_labels()
        .label_font(("sans-serif", 17))
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    Ok(())
}
