#include "client/client_main.h"

int main(int argc, char** argv) { return plumbline::client::ClientMain(argc, argv); }
