#ifndef PLUMBLINE_CLIENT_PROGRESS_LINE_H_
#define PLUMBLINE_CLIENT_PROGRESS_LINE_H_

#include <cstdio>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/style.h"
#include "common/clock.h"
#include "proto/plumbline/v1/event.pb.h"

namespace plumbline::client {

// What a job's events say about how far it is. One thread.
class JobProgress {
 public:
  // Events that a superseded attempt left are forgotten with it.
  void Take(const v1::JobEvent& event);

  // One line without a newline, cut to fit in style.columns, e.g.
  //   small  2 of 3 layouts done  [#######-----]  131/264 nodes  backward, candidate  12 s
  std::string Line(const Style& style, absl::Duration elapsed) const;

 private:
  struct TaskProgress {
    std::string title;
    v1::JobState state = v1::JOB_STATE_QUEUED;
    std::string waiting;
    v1::Progress progress;
    int attempt = 0;
    int failing_entries = 0;
  };

  const TaskProgress* Current() const;

  std::map<std::string, TaskProgress> tasks_;  // By name.
};

// A line of the terminal that is drawn over again. Nothing is written where `file` is no terminal.
// One thread.
class ProgressLine {
 public:
  // `file` and `clock` must outlive it.
  ProgressLine(std::FILE* file, bool is_terminal, const Style& style, Clock* clock);
  ~ProgressLine();  // Erases the line.
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Take(const v1::JobEvent& event);
  // Writes a line that stays above.
  void Say(absl::string_view message);
  void Erase();

 private:
  void Draw();

  std::FILE* const file_;
  const bool is_terminal_;
  const Style style_;
  Clock* const clock_;
  const absl::Time start_;
  absl::Time last_drawn_ = absl::InfinitePast();
  bool drawn_ = false;
  JobProgress progress_;
};

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_PROGRESS_LINE_H_
