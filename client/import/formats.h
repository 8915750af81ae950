#pragma once
// Inside client/import: one importer per file.

#include "client/import/importer.h"

namespace param {

Importer NcclTestsImporter();
Importer NcclTestsJsonImporter();
Importer OsuImporter();

}  // namespace param
