// What a broken or hostile worker may send.

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/line/messages.h"

namespace param::line {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(absl::string_view line) {
  const absl::StatusOr<FromWorker> decoded = DecodeFromWorker(line);
  EXPECT_FALSE(decoded.ok()) << line.substr(0, 200);
  if (decoded.ok()) return "";
  EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(decoded.status().message());
}

std::string Repeat(absl::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) absl::StrAppend(&out, text);
  return out;
}

std::string SamplesLine(absl::string_view labels, absl::string_view values) {
  return absl::StrCat(R"({"type":"samples","case":0,"metric":"time","unit":"s","labels":)", labels,
                      R"(,"values":)", values, "}");
}

TEST(Hostile, WhatIsNotAnObjectIsRefused) {
  for (const char* line : {"", " ", "\n", "garbage", "42", "[]", "\"x\"", "null", "{", "{}}",
                           "{\"type\":\"done\"} trailing", "\xff\xfe", "{\"type\":\"\xff\"}"}) {
    ErrorOf(line);
  }
  ErrorOf(std::string("\0\0\0", 3));
}

TEST(Hostile, UnknownKeysAreIgnoredAndUnknownTypesRefused) {
  EXPECT_TRUE(DecodeFromWorker(R"({"type":"done","later":[1,{"x":2}]})").ok());
  EXPECT_EQ(ErrorOf(R"({"type":"launch"})"), "type: unknown");
  EXPECT_EQ(ErrorOf(R"({"kind":"done"})"), "type: missing");
  EXPECT_EQ(ErrorOf(R"({"type":7})"), "type: not a string");
  EXPECT_EQ(ErrorOf(R"({"type":"assignment"})"), "type: unknown");  // not a worker's word
}

TEST(Hostile, EveryKeyIsRequired) {
  for (const char* type : {"hello", "phase_begin", "phase_end", "exchange", "case_begin", "samples",
                           "case_end", "environment", "failure", "log"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat("{\"type\":\"", type, "\"}")), HasSubstr("missing")) << type;
  }
}

TEST(Hostile, DeepNestingIsRefusedBeforeParsing) {
  EXPECT_EQ(ErrorOf(absl::StrCat(R"({"type":"done","x":)", Repeat("[", 500000))),
            "nested too deeply");
  EXPECT_EQ(ErrorOf(absl::StrCat(R"({"type":"done","x":)", Repeat("{\"a\":", 100000))),
            "nested too deeply");
}

TEST(Hostile, ManyValuesAreRefusedBeforeParsing) {
  EXPECT_EQ(ErrorOf(absl::StrCat(R"({"type":"done","x":[)", Repeat("1,", 400000), "1]}")),
            "too many values");
  EXPECT_EQ(ErrorOf(absl::StrCat(R"({"type":"done","x":[)", Repeat("[],", 300000), "1]}")),
            "too many values");
}

TEST(Hostile, SeparatorsInsideStringsAreNoStructure) {
  const std::string text = Repeat("[{,:\\\"", 10000);
  EXPECT_TRUE(
      DecodeFromWorker(absl::StrCat(R"({"type":"log","level":"info","text":")", text, "\"}")).ok());
}

TEST(Hostile, LinesBeyondTheLimitAreRefused) {
  EXPECT_EQ(
      ErrorOf(absl::StrCat(R"({"type":"done","x":")", std::string(kMaxLineBytes, 'x'), "\"}")),
      "line too long");
}

TEST(Hostile, NumbersOutOfRangeAreRefused) {
  for (const char* number : {"-2", "10000", "9223372036854775808", "18446744073709551616", "1e3",
                             "1.5", "\"1\"", "true", "null", "1e999", "[]"}) {
    ErrorOf(absl::StrCat(R"({"type":"phase_begin","phase":"timed","case":)", number, "}"));
  }
  ErrorOf(R"({"type":"case_begin","case":-1})");
  ErrorOf(R"({"type":"exchange","round":-1,"data":""})");
  ErrorOf(R"({"type":"hello","token":"","pid":99999999999,"protocol":1,"version":""})");
}

TEST(Hostile, UnknownWordsAreRefused) {
  ErrorOf(R"({"type":"phase_begin","phase":"lunch","case":0})");
  ErrorOf(R"({"type":"case_end","case":0,"status":"GREAT","reason":"","scalars":{},"info":{}})");
  ErrorOf(R"({"type":"log","level":"fatal","text":""})");
}

TEST(Hostile, SamplesMustBeWholeDoublesInBase64) {
  ErrorOf(SamplesLine("{}", "\"!!!!\""));
  ErrorOf(SamplesLine("{}", "\"AAAA\""));
  ErrorOf(SamplesLine("{}", "[1,2]"));
  const std::string many = absl::Base64Escape(std::string((kMaxSamplesPerLine + 1) * 8, '\0'));
  EXPECT_THAT(ErrorOf(SamplesLine("{}", absl::StrCat("\"", many, "\""))), HasSubstr("at most"));
}

TEST(Hostile, LabelsAreFewShortNames) {
  ErrorOf(SamplesLine(R"({"a":1})", "\"\""));
  ErrorOf(SamplesLine(R"({"a=b":"c"})", "\"\""));
  ErrorOf(SamplesLine(R"({"a":"b,c"})", "\"\""));
  ErrorOf(SamplesLine(R"({"":"x"})", "\"\""));
  ErrorOf(SamplesLine(absl::StrCat(R"({"a":")", std::string(65, 'x'), "\"}"), "\"\""));
  ErrorOf(SamplesLine(
      R"({"a":"1","b":"1","c":"1","d":"1","e":"1","f":"1","g":"1","h":"1","i":"1"})", "\"\""));
}

TEST(Hostile, MetricNamesAreNames) {
  ErrorOf(R"({"type":"samples","case":0,"metric":"","unit":"s","labels":{},"values":""})");
  ErrorOf(R"({"type":"samples","case":0,"metric":"a b","unit":"s","labels":{},"values":""})");
  ErrorOf(R"({"type":"samples","case":0,"metric":"t","unit":"s\n","labels":{},"values":""})");
}

TEST(Hostile, LongTextIsCut) {
  const absl::StatusOr<FromWorker> decoded = DecodeFromWorker(absl::StrCat(
      R"({"type":"case_end","case":0,"status":"FAILED","scalars":{},"info":{},"reason":")",
      std::string(900000, 'x'), "\"}"));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(std::get<CaseEnd>(*decoded).reason.size(), 4096U);
}

TEST(Hostile, TooManyNotesAreRefused) {
  std::string notes;
  for (int i = 0; i < 257; ++i) absl::StrAppend(&notes, i == 0 ? "" : ",", "\"k", i, "\":\"\"");
  EXPECT_THAT(ErrorOf(absl::StrCat(R"({"type":"environment","facts":{)", notes, "}}")),
              HasSubstr("257 entries, at most 256"));
}

TEST(Hostile, ExchangedDataIsBounded) {
  const std::string large = absl::Base64Escape(std::string(kMaxExchangeBytes + 1, 'x'));
  EXPECT_THAT(ErrorOf(absl::StrCat(R"({"type":"exchange","round":0,"data":")", large, "\"}")),
              HasSubstr("65537 bytes, at most 65536"));
}

TEST(HostileAgent, ReadingIsTotalToo) {
  for (const char* line :
       {"", "{}", R"({"type":"done"})", R"({"type":"ack","lines":-1})",
        R"({"type":"exchange_reply","round":0,"data":[1]})",
        R"({"type":"exchange_reply","round":0,"data":{}})", R"({"type":"assignment","job":"j"})"}) {
    EXPECT_FALSE(DecodeFromAgent(line).ok()) << line;
  }
}

TEST(HostileAgent, ARankBeyondTheWorldIsRefused) {
  Assignment assignment;
  assignment.ranks = 2;
  assignment.rank = 2;
  EXPECT_FALSE(DecodeFromAgent(Encode(FromAgent(assignment))).ok());
}

}  // namespace
}  // namespace param::line
