#include "worker/h3/inventory_names.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace plumbline::h3 {
namespace {

constexpr absl::string_view kNodes = "nodes.";
constexpr absl::string_view kGradient = ".grad";
constexpr absl::string_view kInput = "input.";
constexpr absl::string_view kInputGradients = "input_gradients.";
constexpr absl::string_view kOutput = "output.";
// Refiner blocks, here and in captures; blocks are called "block.N" in both.
constexpr absl::string_view kRefiner = "refiner.";
constexpr absl::string_view kCapturedRefiner = "token_refiner.refiner_blocks.";
constexpr absl::string_view kBlock = "block.";
// The node whose output is the block's.
constexpr absl::string_view kLastOfBlock = "/residual_mlp";

// Modules whose output captures have, and that are one node here.
constexpr absl::string_view kBoundaries[] = {"proj_in",       "audio_proj_in", "context_embedder",
                                             "token_refiner", "time_proj",     "time_embedder",
                                             "norm_out",      "proj_out",      "audio_proj_out"};

// "refiner.0" -> "token_refiner.refiner_blocks.0"; "block.0" stays.
std::string CapturedBlock(absl::string_view place) {
  if (absl::ConsumePrefix(&place, kRefiner)) return absl::StrCat(kCapturedRefiner, place);
  return std::string(place);
}

bool IsBlock(absl::string_view name) {
  return absl::StartsWith(name, kBlock) || absl::StartsWith(name, kRefiner);
}

}  // namespace

std::string InventoryNameOfNode(absl::string_view node) {
  if (absl::StartsWith(node, kOutput)) return std::string(node);
  if (IsBlock(node)) {
    if (!absl::ConsumeSuffix(&node, kLastOfBlock)) return "";
    return absl::StrCat(kNodes, CapturedBlock(node));
  }
  const bool known =
      std::find(std::begin(kBoundaries), std::end(kBoundaries), node) != std::end(kBoundaries);
  return known ? absl::StrCat(kNodes, node) : "";
}

std::string InventoryNameOfInputGradient(absl::string_view tap) {
  absl::ConsumePrefix(&tap, kInput);
  absl::ConsumeSuffix(&tap, kGradient);
  return absl::StrCat(kInputGradients, tap);
}

std::string TapOfInventoryName(absl::string_view name) {
  if (absl::ConsumePrefix(&name, kInputGradients)) return absl::StrCat(kInput, name, kGradient);
  if (!absl::ConsumePrefix(&name, kNodes)) return std::string(name);
  const bool gradient = absl::ConsumeSuffix(&name, kGradient);
  std::string tap(name);
  if (absl::ConsumePrefix(&name, kCapturedRefiner)) tap = absl::StrCat(kRefiner, name);
  if (IsBlock(tap)) absl::StrAppend(&tap, kLastOfBlock);
  if (gradient) absl::StrAppend(&tap, kGradient);
  return tap;
}

std::string FirstTensorBehind(absl::string_view node) {
  if (node == "scatter") return "nodes.block.0";
  const absl::string_view place = node.substr(0, node.find('/'));
  if (IsBlock(node)) return absl::StrCat(kNodes, CapturedBlock(place));
  // "norm_out/linear" and "norm_out/float32" are part of the module norm_out.
  return InventoryNameOfNode(place);
}

}  // namespace plumbline::h3
