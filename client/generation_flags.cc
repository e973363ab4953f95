#include "client/generation_flags.h"

#include <CLI/CLI.hpp>

namespace plumbline::client {

void AddGenerationFlags(CLI::App* command, SubmitGeneration* flags) {
  command->add_option("--contract", flags->contract, "JSON file: what is generated")->required();
  command
      ->add_option("--conditioning", flags->conditioning,
                   "Encoded prompt and keyframes: FILE or worker:PATH")
      ->required();
  command->add_option("--seeds", flags->seeds, "E.g. 42,43; default all of the contract's");
  command->add_option("--noise", flags->noise,
                      "Initial noise in place of the contract's generator:\nFILE or worker:PATH");
  CLI::Option* gate = command->add_option("--gate", flags->gate,
                                          "Full-model job, ended, that the composition passed");
  command
      ->add_flag("--preflight", flags->preflight,
                 "Generate without a gate; the report says so and cannot be cited")
      ->excludes(gate);
  command->add_option("--against", flags->against,
                      "Generation job to compare with: drift of the latents after every step,\n"
                      "and quality once it is decoded");
  command->add_option("--spread", flags->spread,
                      "Generation job of another provider composition, whose own distance from\n"
                      "--against is shown; may be given several times");
  command->add_option("--repeat", flags->repeat,
                      "Generation job that repeats --against, as a control");
  command->add_flag("--verify-last-step", flags->verify_last_step,
                    "Compute the last saved step again and demand equal bytes");
  command->add_flag("--latents-only", flags->latents_only, "Stop at the latents");
  command->add_option("--save-tensors", flags->save_tensors,
                      "Write rows and velocities of every step to this file (waits for\n"
                      "them); of several seeds, to one file each: NAME-SEED.safetensors");
}

}  // namespace plumbline::client
