#include "server/http/static_files.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/files.h"
#include "common/http_message.h"
#include "common/sha256.h"
#include "common/status.h"

namespace plumbline::server {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxBytes = 64 << 20;
constexpr char kIndex[] = "index.html";
constexpr absl::string_view kImmutableFolder = "assets/";
// Below it the headers cost more than is saved.
constexpr size_t kLeastBytesToCompress = 512;

std::string ContentTypeOfPath(absl::string_view path) {
  constexpr std::array<std::pair<absl::string_view, absl::string_view>, 14> kTypes = {{
      {".html", "text/html; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".mjs", "text/javascript; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".json", "application/json"},
      {".map", "application/json"},
      {".webmanifest", "application/manifest+json"},
      {".svg", "image/svg+xml"},
      {".png", "image/png"},
      {".ico", "image/x-icon"},
      {".woff2", "font/woff2"},
      {".wasm", "application/wasm"},
      {".webp", "image/webp"},
      {".txt", "text/plain; charset=utf-8"},
  }};
  for (const auto& [ending, type] : kTypes) {
    if (absl::EndsWith(path, ending)) return std::string(type);
  }
  return "application/octet-stream";
}

std::string Gzip(const std::string& bytes) {
  z_stream stream = {};
  // 16: with the header of gzip.
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    return "";
  }
  std::string compressed(deflateBound(&stream, static_cast<uLong>(bytes.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(compressed.data());
  stream.avail_out = static_cast<uInt>(compressed.size());
  const bool whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  compressed.resize(stream.total_out);
  deflateEnd(&stream);
  return whole && compressed.size() < bytes.size() ? compressed : "";
}

bool TakesGzip(const HttpRequest& request) {
  const auto accepts = request.headers.find("accept-encoding");
  if (accepts == request.headers.end()) return false;
  for (const absl::string_view each : absl::StrSplit(accepts->second, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(each, absl::MaxSplits(';', 1));
    if (absl::StripAsciiWhitespace(parts.first) != "gzip") continue;
    const absl::string_view weight = absl::StripAsciiWhitespace(parts.second);
    return weight != "q=0" && weight != "q=0.0" && weight != "q=0.00" && weight != "q=0.000";
  }
  return false;
}

}  // namespace

StaticFiles::StaticFiles(std::map<std::string, std::string> files) {
  for (auto& [path, bytes] : files) {
    File& file = files_[path];
    file.content_type = ContentTypeOfPath(path);
    const bool compressible = absl::StartsWith(file.content_type, "text/") ||
                              absl::StrContains(file.content_type, "json") ||
                              absl::EndsWith(path, ".svg") || absl::EndsWith(path, ".wasm");
    if (compressible && bytes.size() >= kLeastBytesToCompress) file.gzip = Gzip(bytes);
    file.entity_tag = Sha256Hex(bytes).substr(0, 32);
    file.immutable = absl::StartsWith(path, kImmutableFolder);
    file.bytes = std::move(bytes);
  }
}

absl::StatusOr<std::unique_ptr<StaticFiles>> StaticFiles::Load(const std::string& folder,
                                                               absl::string_view field) {
  std::map<std::string, std::string> files;
  int64_t left = kMaxBytes;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (absl::StartsWith(entry->path().filename().string(), ".")) {
      entry.disable_recursion_pending();
      continue;
    }
    std::error_code ignored;
    if (entry->symlink_status(ignored).type() != fs::file_type::regular) continue;
    const std::string path = entry->path().lexically_relative(folder).generic_string();
    PLUMBLINE_ASSIGN_OR_RETURN(std::string bytes, ReadFile(entry->path().string(), left));
    left -= static_cast<int64_t>(bytes.size());
    files.emplace(path, std::move(bytes));
  }
  if (error) {
    return FieldError(field, absl::StrCat(Quoted(folder), " cannot be read: ", error.message()),
                      "a folder with the dashboard's files");
  }
  if (files.count(kIndex) == 0) {
    return FieldError(field, absl::StrCat(Quoted(folder), " has no ", kIndex),
                      "a folder with the dashboard's files");
  }
  return std::make_unique<StaticFiles>(std::move(files));
}

HttpResponse StaticFiles::Serve(const HttpRequest& request) const {
  const absl::string_view path = absl::StripPrefix(request.path, "/");
  auto found = files_.find(std::string(path));
  if (found == files_.end() && !absl::StrContains(path.substr(path.rfind('/') + 1), ".")) {
    found = files_.find(kIndex);
  }
  HttpResponse response;
  response.headers = {{"X-Content-Type-Options", "nosniff"},
                      {"Content-Security-Policy", kPagePolicy},
                      {"Cross-Origin-Opener-Policy", "same-origin"},
                      {"Cross-Origin-Resource-Policy", "same-origin"},
                      {"Referrer-Policy", "no-referrer"}};
  if (found == files_.end()) {
    response.status = 404;
    response.body = "error 404\n";
    return response;
  }
  const File& file = found->second;
  const bool gzip = !file.gzip.empty() && TakesGzip(request);
  // Two encodings are two entities.
  const std::string tag = absl::StrCat(file.entity_tag, gzip ? "-gzip" : "");
  response.content_type = file.content_type;
  response.headers.emplace_back("ETag", absl::StrCat("\"", tag, "\""));
  response.headers.emplace_back(
      "Cache-Control", file.immutable ? "public, max-age=31536000, immutable" : "no-cache");
  response.headers.emplace_back("Vary", "Accept-Encoding");
  const auto known = request.headers.find("if-none-match");
  if (known != request.headers.end() && NamesEntityTag(known->second, tag)) {
    response.status = 304;
    response.content_type = "";
    return response;
  }
  if (gzip) response.headers.emplace_back("Content-Encoding", "gzip");
  response.body = gzip ? file.gzip : file.bytes;
  return response;
}

}  // namespace plumbline::server
