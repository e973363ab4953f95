#include "client/token_flags.h"

#include <CLI/CLI.hpp>

namespace plumbline::client {

void AddToken(CommandTree* tree) {
  CLI::App* group = tree->AddGroup(
      "token", "Who may call a server: its access file. Changes the file on this machine");
  CLI::App* command = nullptr;
  const auto add_file = [&command](std::string* file) {
    command->add_option("--file", *file, "The file of plumbline-server's --access-file")
        ->required();
  };
  auto* create = tree->Add<CreateToken>(
      group, "create", "Let somebody in; prints the token, which is kept nowhere",
      {"plumbline token create --file=access.json --name=alice --role=submitter >alice.token"},
      &command);
  add_file(&create->file);
  command->add_option("--name", create->name, "Who it is: in the audit log too")->required();
  command->add_option("--role", create->role, "viewer, submitter, worker or admin")->required();
  command->add_option("--expires", create->expires, "In so long, e.g. 720h; default never");
  command->add_option("--certificate", create->certificate,
                      "No token: the common name of client certificates");
  auto* list = tree->Add<ListTokens>(group, "list", "Who may call, and who no more",
                                     {"plumbline token list --file=access.json"}, &command);
  add_file(&list->file);
  auto* revoke = tree->Add<RevokeToken>(
      group, "revoke", "Let somebody in no more; the server notices within a second",
      {"plumbline token revoke --file=access.json alice"}, &command);
  command->add_option("NAME", revoke->name, "As created")->required();
  add_file(&revoke->file);
}

}  // namespace plumbline::client
