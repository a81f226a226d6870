//! Requests and answers of the control protocol, guided by coverage.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::control(data));
