#pragma once
// What a backend says about this machine. Loads foreign code, which may crash or hang: run it in a
// throw-away process with a deadline (param-worker --probe PATH) and read its standard output.

#include <string>

namespace param {

// One JSON object on one line, whatever happens short of a crash:
//   {"name": "cpu", "version": "0.1.0", "loadable": true, "usable": true, "reason": "",
//    "devices": 1, "tables": ["device"], "describe": {...}}
// "reason" goes with all that is not usable: the loader's words, the backend's, "no device found".
// "devices" is that of the device table, 0 without one. "describe" is the backend's own object, {}
// when it has none or it is no JSON. A table "comm" describes nothing: when its probe answers well,
// the text that it leaves in `why`, if any, is its library with the version, and goes to
// "libraries" there.
std::string RunProbe(const std::string& path);

}  // namespace param
