#include "client/import/importer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/import/formats.h"
#include "proto/base/status.h"
#include "proto/base/text.h"

namespace param {
namespace {

const Importer* Recognised(absl::string_view text) {
  for (const Importer& importer : AllImporters()) {
    if (importer.recognises(text)) return &importer;
  }
  return nullptr;
}

}  // namespace

const std::vector<Importer>& AllImporters() {
  static const auto* const importers =
      new std::vector<Importer>{NcclTestsImporter(), NcclTestsJsonImporter(), OsuImporter()};
  return *importers;
}

std::vector<std::string> ImportFormats() {
  std::vector<std::string> names;
  for (const Importer& importer : AllImporters()) names.emplace_back(importer.format);
  return names;
}

absl::StatusOr<Imported> ImportResults(absl::string_view format, absl::string_view file,
                                       absl::string_view text, const ImportHints& hints) {
  const std::vector<std::string> names = ImportFormats();
  const Importer* importer = nullptr;
  if (format == "auto") {
    importer = Recognised(text);
    if (importer == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          file, ": it looks like none of ", absl::StrJoin(names, ", "), "; name it with --format"));
    }
  } else {
    const auto it = std::find(names.begin(), names.end(), format);
    if (it == names.end()) {
      return absl::InvalidArgumentError(absl::StrCat("format \"", format, "\" is not one of ",
                                                     absl::StrJoin(names, ", "),
                                                     DidYouMean(format, names)));
    }
    importer = &AllImporters()[static_cast<std::size_t>(it - names.begin())];
  }
  PARAM_ASSIGN_OR_RETURN(Imported imported, importer->read(text, hints), file);
  imported.request.set_format(std::string(importer->format));
  return imported;
}

}  // namespace param
