//! Every method passes every case of the suite.

use newsreel_store::conformance::{self, CASES};
use newsreel_store::methods::METHODS;

#[test]
fn every_method_keeps_every_promise() {
    conformance::variants().for_each(conformance::run);
}

#[test]
fn the_table_of_methods_gives_each_number_once() {
    let mut numbers: Vec<u8> = METHODS.iter().map(|method| method.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), METHODS.len());
    assert!(CASES.len() >= 13);
}
