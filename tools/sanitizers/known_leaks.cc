// Leaks of Debian's libraries that LeakSanitizer passes over: each names its library, and says why.
//
// libcares (1.18.1-3): gRPC has it look up names. Where /etc/hosts names no ::1, asking for the
// IPv6 addresses of "localhost" leaks that name, ten bytes a lookup: ares__readaddrinfo keeps a
// copy of it though it finds nothing, and ares__addrinfo_localhost puts its own over it. Mended in
// c-ares 1.19.0 ("Fix memory leak in reading /etc/hosts"). The library is named because it is
// stripped and keeps no frame pointers: its functions, and who called them, are not in the report.
// Nothing but gRPC calls it.

extern "C" const char* __lsan_default_suppressions();

extern "C" const char* __lsan_default_suppressions() { return "leak:libcares.so.2\n"; }
