// What ThreadSanitizer leaves out in tests that link this file.

// oneDNN is not built with the sanitizer, which so does not see the locks inside it.
extern "C" const char* __tsan_default_suppressions() { return "race:libdnnl.so\n"; }
