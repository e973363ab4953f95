#ifndef PLUMBLINE_COMMON_SANITIZER_H_
#define PLUMBLINE_COMMON_SANITIZER_H_

// For tests of what a sanitizer changes: how much memory a process takes, and how long it does.

namespace plumbline {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

}  // namespace plumbline

// Skips the test, or the rest of it, in a build with a sanitizer. `reason` ends the sentence
// "not under a sanitizer: ".
#define PLUMBLINE_SKIP_UNDER_SANITIZERS(reason)                            \
  do {                                                                     \
    if (::plumbline::kAddressSanitizer || ::plumbline::kThreadSanitizer) { \
      GTEST_SKIP() << "not under a sanitizer: " << (reason);               \
    }                                                                      \
  } while (false)

#endif  // PLUMBLINE_COMMON_SANITIZER_H_
