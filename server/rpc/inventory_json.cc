#include <google/protobuf/util/json_util.h>

#include "server/rpc/records.h"

namespace param {

std::string InventoryJson(const v1::Inventory& inventory) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string json;
  if (!google::protobuf::util::MessageToJsonString(inventory, &json, options).ok()) return "{}";
  return json;
}

}  // namespace param
