#include "client/progress_line.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plumbline::client {
namespace {

constexpr int kBarWidth = 24;
// More often the eye sees nothing more, and a slow terminal would hold up the events.
constexpr absl::Duration kRedraw = absl::Milliseconds(50);

std::string Bar(const v1::Progress& progress, const Style& style) {
  const int64_t done = std::clamp<int64_t>(progress.done(), 0, progress.total());
  const int filled = static_cast<int>(done * kBarWidth / progress.total());
  std::string bar;
  for (int i = 0; i < kBarWidth; ++i) {
    if (style.unicode) {
      absl::StrAppend(&bar, i < filled ? "\u2501" : "\u2500");
    } else {
      absl::StrAppend(&bar, i < filled ? "#" : "-");
    }
  }
  return bar;
}

// The first `columns` characters of UTF-8 text.
std::string Cut(const std::string& text, int columns) {
  if (DisplayWidth(text) <= columns) return text;
  std::string cut = text;
  while (!cut.empty() && DisplayWidth(cut) > columns) cut.pop_back();
  return cut;
}

}  // namespace

void JobProgress::Take(const v1::JobEvent& event) {
  if (event.task().empty()) return;
  TaskProgress& task = tasks_[event.task()];
  switch (event.body_case()) {
    case v1::JobEvent::kTaskState:
      if (!event.task_state().title().empty()) task.title = event.task_state().title();
      task.state = event.task_state().state();
      task.waiting = event.task_state().waiting_reason().message();
      break;
    case v1::JobEvent::kAttemptChange:
      task.attempt = event.attempt_change().number();
      break;
    case v1::JobEvent::kAttemptSuperseded:
      task.progress.Clear();
      task.failing_entries = 0;
      break;
    case v1::JobEvent::kProgress:
      task.progress = event.progress();
      break;
    case v1::JobEvent::kNode:
      if (event.node().failed_gates_size() > 0) ++task.failing_entries;
      break;
    default:
      break;
  }
}

const JobProgress::TaskProgress* JobProgress::Current() const {
  const TaskProgress* current = nullptr;
  for (const auto& [name, task] : tasks_) {
    if (task.state == v1::JOB_STATE_RUNNING) return &task;
    if (current == nullptr && task.state == v1::JOB_STATE_QUEUED) current = &task;
  }
  return current;
}

std::string JobProgress::Line(const Style& style, absl::Duration elapsed) const {
  std::vector<std::string> parts;
  const TaskProgress* current = Current();
  if (tasks_.size() > 1) {
    const auto done = std::count_if(tasks_.begin(), tasks_.end(), [](const auto& entry) {
      return entry.second.state == v1::JOB_STATE_SUCCEEDED;
    });
    parts.push_back(absl::StrCat(done, "/", tasks_.size(), " done"));
  }
  if (current == nullptr) {
    parts.push_back(tasks_.empty() ? "waiting for the service" : "writing the report");
  } else {
    parts.push_back(current->title);
    if (current->attempt > 1) parts.push_back(absl::StrCat("attempt ", current->attempt));
    const v1::Progress& progress = current->progress;
    if (current->state == v1::JOB_STATE_QUEUED) {
      parts.push_back(current->waiting.empty() ? "queued"
                                               : absl::StrCat("queued: ", current->waiting));
    } else if (progress.total() > 0) {
      parts.push_back(Bar(progress, style));
      parts.push_back(absl::StrCat(progress.done(), "/", progress.total(), " ", progress.unit()));
    }
    if (current->failing_entries > 0) {
      parts.push_back(absl::StrCat(current->failing_entries, " failing"));
    }
    if (!progress.activity().empty()) parts.push_back(progress.activity());
  }
  parts.push_back(absl::StrCat(absl::ToInt64Seconds(elapsed), " s"));
  return Cut(absl::StrJoin(parts, "  "), style.columns - 1);
}

ProgressLine::ProgressLine(std::FILE* file, bool is_terminal, const Style& style, Clock* clock)
    : file_(file), is_terminal_(is_terminal), style_(style), clock_(clock), start_(clock->Now()) {}

ProgressLine::~ProgressLine() { Erase(); }

void ProgressLine::Take(const v1::JobEvent& event) {
  progress_.Take(event);
  Draw();
}

void ProgressLine::Say(absl::string_view message) {
  Erase();
  std::fprintf(file_, "%.*s\n", static_cast<int>(message.size()), message.data());
  std::fflush(file_);
}

void ProgressLine::Erase() {
  if (!drawn_) return;
  std::fputs("\r\033[K", file_);
  std::fflush(file_);
  drawn_ = false;
}

void ProgressLine::Draw() {
  if (!is_terminal_) return;
  const absl::Time now = clock_->Now();
  if (now - last_drawn_ < kRedraw) return;
  last_drawn_ = now;
  const std::string line = progress_.Line(style_, now - start_);
  std::fprintf(file_, "\r\033[K%s", line.c_str());
  std::fflush(file_);
  drawn_ = true;
}

}  // namespace plumbline::client
