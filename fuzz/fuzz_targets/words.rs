//! Lines that describe a packet, guided by coverage.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::words(data));
