//! What a kernel left undone, guided by coverage.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::offload(data));
