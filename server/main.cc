#include "server/server_main.h"

int main(int argc, char** argv) { return plumbline::server::ServerMain(argc, argv); }
