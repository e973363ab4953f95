#include "worker/media/wav.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/mapped_file.h"
#include "common/status.h"
#include "worker/media/limits.h"

namespace plumbline::media {
namespace {

// The header as Microsoft and IBM described it: RIFF, then chunks of a name, a length and as many
// bytes, padded to an even number.
constexpr uint16_t kInteger = 1;
constexpr uint16_t kFloat = 3;
constexpr uint16_t kExtensible = 0xfffe;
constexpr int64_t kMaxChannels = 2;

using Bytes = absl::Span<const uint8_t>;

uint16_t Read16(const uint8_t* bytes) { return static_cast<uint16_t>(bytes[0] | bytes[1] << 8); }
uint32_t Read32(const uint8_t* bytes) {
  return Read16(bytes) | static_cast<uint32_t>(Read16(bytes + 2)) << 16;
}

void Append16(uint32_t value, std::string* out) {
  out->push_back(static_cast<char>(value & 0xff));
  out->push_back(static_cast<char>(value >> 8 & 0xff));
}
void Append32(uint32_t value, std::string* out) {
  Append16(value & 0xffff, out);
  Append16(value >> 16, out);
}

struct Format {
  uint16_t encoding;
  uint16_t channels;
  uint32_t rate;
  uint16_t bits;
};

std::optional<Format> ReadFormat(Bytes chunk) {
  if (chunk.size() < 16) return std::nullopt;
  Format format = {Read16(&chunk[0]), Read16(&chunk[2]), Read32(&chunk[4]), Read16(&chunk[14])};
  // The encoding is then the first field of a GUID.
  if (format.encoding == kExtensible && chunk.size() >= 26) format.encoding = Read16(&chunk[24]);
  const bool is_known = (format.encoding == kFloat && format.bits == 32) ||
                        (format.encoding == kInteger &&
                         (format.bits == 16 || format.bits == 24 || format.bits == 32));
  if (!is_known || format.channels < 1 || format.channels > kMaxChannels || format.rate < 1 ||
      format.rate > static_cast<uint32_t>(kMaxSampleRateHz)) {
    return std::nullopt;
  }
  return format;
}

float ReadSample(const Format& format, const uint8_t* bytes) {
  if (format.encoding == kFloat) {
    const uint32_t bits = Read32(bytes);
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  if (format.bits == 16) return static_cast<float>(static_cast<int16_t>(Read16(bytes))) / 32768.0f;
  // Shifted up to 32 bits, so that the sign is where it belongs.
  const uint32_t bits = format.bits == 32
                            ? Read32(bytes)
                            : (Read16(bytes) | static_cast<uint32_t>(bytes[2]) << 16) << 8;
  return static_cast<float>(static_cast<double>(static_cast<int32_t>(bits)) / 2147483648.0);
}

AudioTrack ReadData(const Format& format, Bytes data) {
  AudioTrack track;
  track.sample_rate_hz = static_cast<int32_t>(format.rate);
  track.channels = format.channels;
  const size_t sample_bytes = format.bits / 8;
  const size_t samples = data.size() / (sample_bytes * format.channels);
  track.samples.resize(samples * format.channels);
  for (size_t i = 0; i < samples; ++i) {
    for (size_t channel = 0; channel < format.channels; ++channel) {
      track.samples[channel * samples + i] =
          ReadSample(format, data.data() + (i * format.channels + channel) * sample_bytes);
    }
  }
  return track;
}

}  // namespace

absl::Status WriteWav(const std::string& path, const AudioTrack& track) {
  constexpr uint64_t kLargest = 0xffffffff - 64;
  const auto channels = static_cast<uint32_t>(track.channels);
  const uint64_t data_bytes = track.samples.size() * sizeof(float);
  if (data_bytes > kLargest) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": a WAV file cannot hold ", data_bytes, " bytes of samples"));
  }
  std::string out = "RIFF";
  Append32(static_cast<uint32_t>(50 + data_bytes), &out);  // All that follows.
  out += "WAVEfmt ";
  Append32(18, &out);
  Append16(kFloat, &out);
  Append16(channels, &out);
  Append32(static_cast<uint32_t>(track.sample_rate_hz), &out);
  Append32(static_cast<uint32_t>(track.sample_rate_hz) * channels * sizeof(float), &out);
  Append16(channels * sizeof(float), &out);
  Append16(32, &out);
  Append16(0, &out);  // No extension.
  out += "fact";
  Append32(4, &out);
  Append32(static_cast<uint32_t>(track.SamplesPerChannel()), &out);
  out += "data";
  Append32(static_cast<uint32_t>(data_bytes), &out);
  for (int64_t i = 0; i < track.SamplesPerChannel(); ++i) {
    for (int64_t channel = 0; channel < track.channels; ++channel) {
      uint32_t bits;
      std::memcpy(&bits, &track.Channel(channel)[static_cast<size_t>(i)], sizeof(bits));
      Append32(bits, &out);
    }
  }
  return WriteFileAtomically(path, out);
}

absl::StatusOr<AudioTrack> ReadWav(const std::string& path) {
  PLUMBLINE_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const auto bad = [&path](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
  };
  Bytes rest = file.bytes();
  if (rest.size() < 12 || std::memcmp(rest.data(), "RIFF", 4) != 0 ||
      std::memcmp(rest.data() + 8, "WAVE", 4) != 0) {
    return bad("not a WAV file");
  }
  rest.remove_prefix(12);
  std::optional<Format> format;
  while (rest.size() >= 8) {
    const absl::string_view name(reinterpret_cast<const char*>(rest.data()), 4);
    const uint64_t length = Read32(&rest[4]);
    rest.remove_prefix(8);
    if (length > rest.size()) return bad("it ends within a chunk");
    if (name == "fmt ") {
      format = ReadFormat(rest.subspan(0, length));
      if (!format.has_value()) {
        return bad(absl::StrCat("its encoding is not read; accepted: integers of 16, 24 or 32 ",
                                "bits, float32, in 1 or 2 channels"));
      }
    } else if (name == "data") {
      if (!format.has_value()) return bad("samples before their format");
      if (length / (format->bits / 8 * format->channels) > static_cast<uint64_t>(kMaxSamples)) {
        return bad(absl::StrCat("more than ", kMaxSamples, " samples a channel"));
      }
      AudioTrack track = ReadData(*format, rest.subspan(0, length));
      if (track.samples.empty()) return bad("it holds no samples");
      return track;
    }
    rest.remove_prefix(std::min<uint64_t>(length + length % 2, rest.size()));
  }
  return bad("it holds no samples");
}

}  // namespace plumbline::media
