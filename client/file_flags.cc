#include "client/file_flags.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "client/shared_flags.h"
#include "common/command_errors.h"

namespace plumbline::client {
namespace {

// Of `verify` and of `verdict`.
void AddBundleFolder(CLI::App* command, RecomputeVerdict* flags) {
  command->add_option("BUNDLE", flags->bundle, "Folder that --bundle wrote")->required();
  command->add_option("--public-key", flags->public_key,
                      "PEM file: Ed25519 key that the bundle must be signed under");
}

}  // namespace

void AddRule(CommandTree* tree) {
  CLI::App* group = tree->AddGroup("rule", "Look at rule files, seal and compare them");
  CLI::App* command = nullptr;
  auto* show = tree->Add<ShowRule>(group, "show", "Check a rule and print it",
                                   {"plumbline rule show rule.json"}, &command);
  command->add_option("RULE", show->rule, "FILE or worker:PATH")->required();
  AddJobFlags(command, &show->job);

  auto* seal =
      tree->Add<SealRule>(group, "seal", "Make a rule that was edited a valid manual one",
                          {"plumbline rule seal rule.json --output=sealed.json"}, &command);
  command->add_option("RULE", seal->rule, "FILE or worker:PATH")->required();
  command->add_option("--output", seal->output, "File to write; default the rule's own");
  AddJobFlags(command, &seal->job);

  auto* compare = tree->Add<CompareRules>(group, "compare",
                                          "k, leave-one-out and bounds of two rules side by side",
                                          {"plumbline rule compare old.json new.json"}, &command);
  command->add_option("A", compare->a, "FILE or worker:PATH")->required();
  command->add_option("B", compare->b, "FILE or worker:PATH")->required();
  AddJobFlags(command, &compare->job);
}

void AddVerdict(CommandTree* tree) {
  CLI::App* command = nullptr;
  auto* verdict = tree->Add<RecomputeVerdict>(tree->root(), "verdict",
                                              "Recompute a bundle's verdict from its files alone",
                                              {"plumbline verdict evidence"}, &command);
  AddBundleFolder(command, verdict);
  AddJobFlags(command, &verdict->job);
  auto* verify = tree->Add<RecomputeVerdict>(
      tree->root(), "verify", "Check a bundle: its files, its signature, and its verdict",
      {"plumbline verify evidence --public-key=key.pem"}, &command);
  AddBundleFolder(command, verify);
  AddJobFlags(command, &verify->job);
}

void AddCompare(CommandTree* tree) {
  CLI::App* command = nullptr;
  auto* flags = tree->Add<CompareFiles>(
      tree->root(), "compare", "Every measure of every tensor of two safetensors files",
      {"plumbline compare A.safetensors B.safetensors"}, &command);
  command->add_option("A", flags->a, "FILE or worker:PATH, judged")->required();
  command->add_option("B", flags->b, "FILE or worker:PATH, the reference")->required();
  AddJobFlags(command, &flags->job);
}

void AddCompareMedia(CommandTree* tree) {
  CLI::App* command = nullptr;
  auto* flags = tree->Add<CompareMedia>(
      tree->root(), "compare-media",
      "Quality of a video and its sound against another: PSNR, SSIM, temporal RMSE,\n"
      "audio, frame by frame",
      {"plumbline compare-media A.mp4 B.mp4 --diff=difference.mp4"}, &command);
  command
      ->add_option("A", flags->a,
                   "MP4, WAV or safetensors (frames, samples): FILE or worker:PATH; name of\n"
                   "a run; or of a generation job, as is B then; judged")
      ->required();
  command->add_option("B", flags->b, "The same, the reference")->required();
  command->add_option("--diff", flags->difference,
                      "Write a video of the difference to this MP4: grey where both are equal");
  command->add_option("--spread", flags->spread,
                      "Of jobs: generation by another provider composition, shown beside A;\n"
                      "may be given several times");
  command->add_option("--repeat", flags->repeat,
                      "Of jobs: generation that repeats B, as a control");
  command->add_option("--seeds", flags->seeds, "Of jobs: e.g. 42,43; default all");
  AddJobFlags(command, &flags->job);
}

void AddDecode(CommandTree* tree) {
  CLI::App* command = nullptr;
  auto* flags = tree->Add<DecodeLatents>(
      tree->root(), "decode", "Decode latents to a video, a soundtrack, a picture or tensors",
      {"plumbline decode --checkpoint=H3 --latents=latents.safetensors --output=video.mp4"},
      &command);
  command->add_option("--checkpoint", flags->checkpoint, "As in submit; of a run, default its own");
  CLI::Option_group* source = command->add_option_group("source");
  CLI::Option* latents =
      source->add_option("--latents", flags->latents,
                         "FILE or worker:PATH, safetensors with z or latents.video and\n"
                         "latents.audio; or the name of a finished run");
  source
      ->add_option("--kept", flags->kept,
                   "In its place: frames that a worker without FFmpeg kept, artifacts/NAME,\n"
                   "FILE or worker:PATH; their .mp4 is made")
      ->excludes(latents);
  source->require_option(1);
  AddRepeated(command, "--output", &flags->out,
              "FILE.mp4, .wav, .png or .safetensors to write; repeatable, one of\n"
              "each kind")
      ->required();
  command->add_option("--composition", flags->composition,
                      "What decodes, e.g. provider; default golden");
  command
      ->add_option("--frames", flags->frames,
                   "Of a .safetensors: f32, or u8 for 8 bits; default f32")
      ->check(CLI::IsMember({"f32", "u8"}));
  CLI::Option* tile =
      command->add_option("--tile", flags->tile, "Side of a tile in pixels; default 256")
          ->transform(WholeNumber(1));
  CLI::Option* overlap = command
                             ->add_option("--tile-overlap", flags->tile_overlap,
                                          "Least overlap of tiles in pixels; default 64")
                             ->transform(WholeNumber(0));
  command->add_flag("--no-tiling", flags->no_tiling, "One tile, whatever the size")
      ->excludes(tile)
      ->excludes(overlap);
  command
      ->add_option("--image-frame", flags->image_frame,
                   "Frame of a .png, from 0; default the middle one")
      ->transform(WholeNumber(0));
  command
      ->add_option("--fps", flags->fps, "Frames a second of a .mp4; default 24, of a run its own")
      ->transform(Number(0, 1000));
  AddJobFlags(command, &flags->job);
}

void AddLayout(CommandTree* tree) {
  CLI::App* command = nullptr;
  auto* flags = tree->Add<BuildLayout>(
      tree->root(), "layout", "Build the tensors of a packed layout",
      {"plumbline layout --layout=tiny --save-tensors=layout.safetensors"}, &command);
  command->add_option("--layout", flags->layout, absl::StrCat(kLayoutForm, ", or a name"))
      ->required();
  command->add_option("--save-tensors", flags->save_tensors, "safetensors file to write")
      ->required();
  AddJobFlags(command, &flags->job);
}

}  // namespace plumbline::client
