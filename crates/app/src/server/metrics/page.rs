//! A page in Prometheus' text format: families of values, each with its help and its kind.

use std::fmt::Write as _;

/// The page.
#[derive(Debug, Default)]
pub(in crate::server) struct Page {
    text: String,
    /// The family that values are written for.
    family: &'static str,
}

impl Page {
    /// A family of values that only rise.
    pub(in crate::server) fn counter(&mut self, name: &'static str, help: &str) {
        self.begin(name, "counter", help);
    }

    /// A family of values that rise and fall.
    pub(in crate::server) fn gauge(&mut self, name: &'static str, help: &str) {
        self.begin(name, "gauge", help);
    }

    /// A family of distributions.
    pub(in crate::server) fn histogram(&mut self, name: &'static str, help: &str) {
        self.begin(name, "histogram", help);
    }

    fn begin(&mut self, name: &'static str, kind: &str, help: &str) {
        self.family = name;
        // A `String` takes everything.
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// A value of the family with these labels.
    pub(in crate::server) fn value(&mut self, labels: &[(&str, &str)], value: u64) {
        self.named("", labels, value as f64);
    }

    /// A distribution of the family: upper ends in microseconds, how many are up to each and not to the one before, and of more than
    /// the last; the sum of all.
    pub(in crate::server) fn distribution(
        &mut self,
        labels: &[(&str, &str)],
        ends_us: &[u64],
        counts: &[u64],
        sum_us: u64,
    ) {
        let mut so_far = 0;
        let ends = ends_us.iter().map(|us| (*us as f64 / 1e6).to_string());
        let ends = ends.chain(["+Inf".to_owned()]);
        for (end, count) in ends.zip(counts) {
            so_far += count;
            let labels = [labels, &[("le", end.as_str())]].concat();
            self.named("_bucket", &labels, so_far as f64);
        }
        self.named("_sum", labels, sum_us as f64 / 1e6);
        self.named("_count", labels, so_far as f64);
    }

    fn named(&mut self, suffix: &str, labels: &[(&str, &str)], value: f64) {
        self.text.push_str(self.family);
        self.text.push_str(suffix);
        for (place, (name, label)) in labels.iter().enumerate() {
            self.text.push(if place == 0 { '{' } else { ',' });
            let _ = write!(self.text, "{name}=\"{}\"", escaped(label));
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }

    /// It.
    pub(in crate::server) fn into_text(self) -> String {
        self.text
    }
}

fn escaped(label: &str) -> String {
    let mut out = String::with_capacity(label.len());
    for c in label.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_distributions_are_written_as_prometheus_reads_them() {
        let mut page = Page::default();
        page.counter("a_total", "A.");
        page.value(&[("x", "say \"\\\"\n"), ("y", "z")], u64::from(u32::MAX));
        page.histogram("b_seconds", "B.");
        page.distribution(&[("x", "1")], &[100, 2_000_000], &[3, 0, 2], 4_500_000);
        let expected = r#"# HELP a_total A.
# TYPE a_total counter
a_total{x="say \"\\\"\n",y="z"} 4294967295
# HELP b_seconds B.
# TYPE b_seconds histogram
b_seconds_bucket{x="1",le="0.0001"} 3
b_seconds_bucket{x="1",le="2"} 3
b_seconds_bucket{x="1",le="+Inf"} 5
b_seconds_sum{x="1"} 4.5
b_seconds_count{x="1"} 5
"#;
        assert_eq!(page.into_text(), expected);
    }
}
