#ifndef PLUMBLINE_CLIENT_SHARED_FLAGS_H_
#define PLUMBLINE_CLIENT_SHARED_FLAGS_H_

#include <string>
#include <vector>

#include "client/command_line.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

// Flags that several commands take, each bound to what the call names, which outlives `command`.

namespace plumbline::client {

// How a layout of one's own is written.
inline constexpr char kLayoutForm[] = "TEXT,FRAMES,HEIGHT,WIDTH,AUDIO,KEYFRAMES";

// May be given several times, one value each.
CLI::Option* AddRepeated(CLI::App* command, const char* flag, std::vector<std::string>* values,
                         const std::string& description);
// Of every command that makes a job; AddWait: also of those that need not wait for it.
void AddJobFlags(CLI::App* command, JobFlags* flags);
void AddWait(CLI::App* command, JobFlags* flags);
void AddFormat(CLI::App* command, std::string* format);
void AddCheckpoint(CLI::App* command, std::string* checkpoint);
void AddLayouts(CLI::App* command, const char* description, std::vector<std::string>* layouts,
                std::vector<std::string>* layout);
void AddComposition(CLI::App* command, std::string* composition, std::vector<std::string>* plugins);
void AddCaptures(CLI::App* command, CaptureFlags* flags);
void AddInject(CLI::App* command, std::string* inject);
void AddBundle(CLI::App* command, std::string* bundle);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_SHARED_FLAGS_H_
