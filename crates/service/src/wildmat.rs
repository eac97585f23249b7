//! Placeholder until `wire` has its wildmat: replaced by `newsreel_wire::Wildmat` under the same name.

/// A pattern of groups.
#[derive(Debug)]
pub struct Wildmat;

impl Wildmat {
    /// Whether it matches.
    pub fn matches(&self, _name: &str) -> bool {
        true
    }
}
