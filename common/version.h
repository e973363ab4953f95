#ifndef PLUMBLINE_COMMON_VERSION_H_
#define PLUMBLINE_COMMON_VERSION_H_

namespace plumbline {

// Of all programs, for people. What decides numbers is the kernel identity, not this.
inline constexpr char kVersion[] = "0.1.0";

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_VERSION_H_
