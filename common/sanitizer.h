#ifndef PLUMBLINE_COMMON_SANITIZER_H_
#define PLUMBLINE_COMMON_SANITIZER_H_

// For tests of what a sanitizer changes: how much memory a process takes, and how long it does.

namespace plumbline {

#if defined(__SANITIZE_ADDRESS__) || defined(PLUMBLINE_THREAD_SANITIZER)
inline constexpr bool kUnderSanitizer = true;
#else
inline constexpr bool kUnderSanitizer = false;
#endif

}  // namespace plumbline

// In a build with a sanitizer, skips what is left of the test; `reason` says what is bounded or
// measured there, and why that cannot be.
#define PLUMBLINE_SKIP_UNDER_SANITIZERS(reason) \
  if (!::plumbline::kUnderSanitizer) {          \
  } else /* NOLINT */                           \
    GTEST_SKIP() << "under a sanitizer: " << (reason)

#endif  // PLUMBLINE_COMMON_SANITIZER_H_
