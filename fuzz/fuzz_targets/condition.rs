//! Segments through TCP rate control, guided by coverage.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::condition(data));
