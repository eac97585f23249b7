//! What was measured, for a terminal.

use std::fmt::Write as _;

use super::run::{Pass, Run};

const MINUTE: f64 = 60.0;

/// One contender, for a terminal.
#[must_use]
pub fn human(run: &Run) -> String {
    let mut text = format!(
        "{} {} {} {}: {:.0} articles/s, last pass {:.1} % of the first\n",
        run.place,
        run.server,
        run.method,
        run.variant,
        run.per_second,
        100.0 * run.ageing,
    );
    // Writing to a text cannot fail.
    for pass in &run.passes {
        let _ = writeln!(text, "  {}", pass_line(pass));
    }
    let _ = writeln!(text, "  digest of all batches: {}", run.digest);
    for complaint in run.remarks.iter().chain(&run.complaints) {
        let _ = writeln!(text, "  {complaint}");
    }
    text
}

fn pass_line(pass: &Pass) -> String {
    let Pass { taken, expire, .. } = pass;
    let sent = pass.batch.as_ref().map_or_else(String::new, |sent| {
        format!(
            ", {} sent in {:.3} min",
            sent.articles,
            sent.seconds / MINUTE
        )
    });
    format!(
        "pass {:>2}: {} accepted, {} refused, {} rejected, {:.0}/s{sent}; {} expired in {:.3} min",
        pass.pass,
        taken.accepted,
        taken.refused,
        taken.rejected,
        pass.per_second,
        expire.articles,
        expire.phase.seconds / MINUTE,
    )
}
