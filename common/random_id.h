#ifndef PLUMBLINE_COMMON_RANDOM_ID_H_
#define PLUMBLINE_COMMON_RANDOM_ID_H_

#include <string>

namespace plumbline {

// Where new resource ids (the last part of jobs/{job}, AIP-122) come from, so that a test can
// foresee them. Any thread may call.
class IdSource {
 public:
  virtual ~IdSource() = default;
  virtual std::string NewId() = 0;
};

// 16 characters of a-z and 2-7, the first a letter: 79 random bits of the kernel's generator, so
// that two coordinators never choose the same. Never destroyed.
IdSource* RandomIds();

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_RANDOM_ID_H_
