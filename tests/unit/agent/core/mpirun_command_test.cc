#include "agent/core/mpirun_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace param::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using Words = std::vector<std::string>;

LaunchPlan TwoHosts() {
  LaunchPlan plan;
  plan.hosts = {{"p0", "n1", 2}, {"p1", "n2", 1}};
  plan.head_addresses = {"10.0.0.1", "fe80::1"};
  plan.interface = "10.0.0.0/24";
  plan.yield_when_idle = true;
  return plan;
}

// What mpirun 4.1.4 gave its shim for host p1 of TwoHosts().
Words Given() {
  return {" orted",
          "-mca",
          "orte_leave_session_attached",
          "\"1\"",
          "-mca",
          "ess",
          "\"env\"",
          "-mca",
          "ess_base_jobid",
          "\"363134976\"",
          "-mca",
          "ess_base_vpid",
          "2",
          "-mca",
          "ess_base_num_procs",
          "\"3\"",
          "-mca",
          "orte_node_regex",
          "\"vm,p[1:0-1]@0(3)\"",
          "-mca",
          "orte_hnp_uri",
          "\"363134976.0;tcp://10.0.0.1:39129\"",
          "--mca",
          "plm_rsh_no_tree_spawn",
          "\"1\"",
          "--mca",
          "pml",
          "\"ob1\"",
          "--mca",
          "btl",
          "\"self,vader,tcp\"",
          "--mca",
          "oob_tcp_if_include",
          "\"10.0.0.0/24\"",
          "--mca",
          "btl_tcp_if_include",
          "\"10.0.0.0/24\"",
          "--mca",
          "if_base_do_not_resolve",
          "\"1\"",
          "--mca",
          "mpi_yield_when_idle",
          "\"1\"",
          "-mca",
          "plm",
          "\"rsh\"",
          "-mca",
          "plm_rsh_agent",
          "\"/run/param-x/worker --launch-daemon\"",
          "-mca",
          "hwloc_base_binding_policy",
          "\"none\"",
          "-mca",
          "rmaps_base_mapping_policy",
          "\"slot\"",
          "-mca",
          "pmix",
          "\"^s1,s2,cray,isolated\""};
}

// Given() with another value for a key.
Words With(const std::string& key, const std::string& value) {
  Words words = Given();
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == key) words[i + 1] = value;
  }
  return words;
}

std::string WhyNot(const Words& words, const LaunchPlan& plan = TwoHosts()) {
  const absl::StatusOr<Words> args = OrtedArgs(words, plan, "p1");
  if (args.ok()) return absl::StrCat("let through: ", absl::StrJoin(*args, " "));
  EXPECT_EQ(args.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(args.status().message()), HasSubstr("orted refused: "));
  return std::string(args.status().message());
}

TEST(MpirunArgsTest, HostsRanksAndNetworkAreThePlans) {
  const Words args = MpirunArgs(TwoHosts(), {"/run/x/worker", "--launch-daemon"},
                                {"param-worker", "--launch-rank", "RANK"});
  const std::string line = absl::StrJoin(args, " ");
  EXPECT_THAT(line, HasSubstr("--host p0:2,p1:1 -n 3 param-worker --launch-rank RANK"));
  EXPECT_THAT(line, HasSubstr("--bind-to none --map-by slot"));
  EXPECT_THAT(line, HasSubstr("--mca oob_tcp_if_include 10.0.0.0/24"));
  EXPECT_THAT(line, HasSubstr("--mca btl_tcp_if_include 10.0.0.0/24"));
  EXPECT_THAT(line, HasSubstr("--mca mpi_yield_when_idle 1"));
  EXPECT_THAT(args, Contains("/run/x/worker --launch-daemon"));
  LaunchPlan roomy = TwoHosts();
  roomy.yield_when_idle = false;
  EXPECT_THAT(absl::StrJoin(MpirunArgs(roomy, {"s"}, {"w"}), " "),
              HasSubstr("--mca mpi_yield_when_idle 0"));
}

TEST(OrtedArgsTest, WhatMpirunGivesGoesOnUnquotedWithoutTheShim) {
  const absl::StatusOr<Words> args = OrtedArgs(Given(), TwoHosts(), "p1");
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_EQ(args->size(), Given().size() - 1 - 3);
  EXPECT_EQ(Words(args->begin(), args->begin() + 3),
            Words({"-mca", "orte_leave_session_attached", "1"}));
  EXPECT_THAT(*args, Contains("363134976.0;tcp://10.0.0.1:39129"));
  EXPECT_THAT(*args, Contains("^s1,s2,cray,isolated"));
  EXPECT_THAT(*args, Not(Contains("plm_rsh_agent")));
  EXPECT_THAT(*args, Not(Contains(HasSubstr("\""))));
}

TEST(OrtedArgsTest, TheProfileThatMpirunReadsForPlainShellsIsLeftOut) {
  Words words = Given();
  const Words before = {"(", "test", "!", "-r", "./.profile", "||", ".", "./.profile;"};
  words.insert(words.begin(), before.begin(), before.end());
  words.push_back(")");
  const absl::StatusOr<Words> args = OrtedArgs(words, TwoHosts(), "p1");
  ASSERT_TRUE(args.ok()) << args.status();
  EXPECT_EQ(*args, *OrtedArgs(Given(), TwoHosts(), "p1"));
  words[7] = "./.evil;";
  EXPECT_THAT(WhyNot(words), HasSubstr("\"(\" is not the program"));
}

TEST(OrtedArgsTest, OtherProgramsAreRefused) {
  for (const char* const program :
       {"/bin/sh", "sh", "orted2", "/usr/bin/orted", "./orted", "orted;", "env", "", "\"orted\"",
        "orted -c", "PATH=/tmp orted"}) {
    Words words = Given();
    words[0] = program;
    EXPECT_THAT(WhyNot(words), HasSubstr("is not the program that may run")) << program;
  }
  EXPECT_THAT(WhyNot({}), HasSubstr("is not the program"));
}

TEST(OrtedArgsTest, FlagsAndKeysThatAreNotListedAreRefused) {
  for (const Words& more :
       {Words{"--debug-daemons"}, Words{"-x"}, Words{"--hnp-uri", "1.0;tcp://10.0.0.1:1"},
        Words{"--prefix", "/tmp", "x"}, Words{"&&"}, Words{"|"}, Words{";", "rm", "-rf"},
        Words{"-MCA", "pml", "ob1"}, Words{"--mca=pml", "ob1", "x"}}) {
    Words words = Given();
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_THAT(WhyNot(words), HasSubstr("is not let through")) << more[0];
  }
  for (const char* const key :
       {"orte_launch_agent", "mca_base_component_path", "plm_rsh_args", "orte_daemon_spin",
        "orte_parent_uri", "orte_fork_agent", "mca_base_param_files", "", "pml\n", "PML"}) {
    Words words = Given();
    words.insert(words.end(), {"-mca", key, "1"});
    EXPECT_THAT(WhyNot(words), HasSubstr("refused: ")) << key;
  }
  Words cut = Given();
  cut.pop_back();
  EXPECT_THAT(WhyNot(cut), HasSubstr("without a value"));
}

TEST(OrtedArgsTest, ShellCharactersAreRefusedWhereverTheyStand) {
  for (const char* const value :
       {"$(reboot)", "`reboot`", "vm;reboot", "vm&", "vm|x", "vm>x", "a b", "\"a\"b\"", "'a'",
        "\"a", "a\"", "\"\"a\"\"", "a\\", "a\nb", "", "../x"}) {
    EXPECT_THAT(WhyNot(With("orte_node_regex", value)), HasSubstr("refused: ")) << value;
    EXPECT_THAT(WhyNot(With("pml", value)), HasSubstr("refused: ")) << value;
    EXPECT_THAT(WhyNot(With("ess_base_vpid", value)), HasSubstr("refused: ")) << value;
    EXPECT_THAT(WhyNot(With("orte_hnp_uri", value)), HasSubstr("refused: ")) << value;
  }
  Words nul = With("pml", std::string("ob1\0x", 5));
  EXPECT_THAT(WhyNot(nul), HasSubstr("quoted in a way"));
}

TEST(OrtedArgsTest, TheHeadMustBeWhereTheHeadNodeIs) {
  const std::string job = "363134976.0";
  for (const std::string& uri :
       {job + ";tcp://10.0.0.2:39129", job + ";tcp://evil.example:1",
        job + ";tcp://10.0.0.1,6.6.6.6:1", job + ";tcp://10.0.0.1:1;tcp://6.6.6.6:1",
        job + ";tcp6://[2001:db8::1]:1", job + ";tcp://:1", job + ";tcp://10.0.0.1",
        job + ";tcp://10.0.0.1:0", job + ";tcp://10.0.0.1:65536", job + ";tcp://10.0.0.1:1x",
        job + ";usock", job + ";http://10.0.0.1:1", job, job + ";",
        std::string("1.0;tcp://10.0.0.1:1"), std::string("363134976.1;tcp://10.0.0.1:1"),
        std::string("file:/tmp/uri"), job + ";tcp://10.0.0.1 :1"}) {
    EXPECT_THAT(WhyNot(With("orte_hnp_uri", "\"" + uri + "\"")), HasSubstr("orte_hnp_uri")) << uri;
  }
  EXPECT_THAT(WhyNot(With("orte_hnp_uri", "\"" + job + ";tcp://10.0.0.2:39129\"")),
              HasSubstr("\"10.0.0.2\" is not an address of the head node n1"));
  const absl::StatusOr<Words> six =
      OrtedArgs(With("orte_hnp_uri", "\"" + job + ";tcp://10.0.0.1:1;tcp6://[fe80::1]:2\""),
                TwoHosts(), "p1");
  EXPECT_TRUE(six.ok()) << six.status();
}

TEST(OrtedArgsTest, ValuesMustBeThePlans) {
  EXPECT_THAT(WhyNot(With("oob_tcp_if_include", "\"eth7\"")),
              HasSubstr("oob_tcp_if_include is \"eth7\", not \"10.0.0.0/24\""));
  EXPECT_THAT(WhyNot(With("ess_base_vpid", "1")), HasSubstr("not the number of host p1"));
  EXPECT_THAT(WhyNot(With("ess_base_vpid", "0")), HasSubstr("not the number of host p1"));
  EXPECT_THAT(WhyNot(With("ess_base_vpid", "18446744073709551616")), HasSubstr("ess_base_vpid"));
  EXPECT_THAT(WhyNot(With("ess_base_num_procs", "4")), HasSubstr("is not 3 for 2 hosts"));
  EXPECT_THAT(WhyNot(With("plm_rsh_no_tree_spawn", "\"0\"")), HasSubstr("plm_rsh_no_tree_spawn"));
  EXPECT_THAT(WhyNot(With("btl", "\"openib\"")), HasSubstr("btl is \"openib\""));
  EXPECT_THAT(WhyNot(With("mpi_yield_when_idle", "\"0\"")), HasSubstr("mpi_yield_when_idle"));
  EXPECT_THAT(WhyNot(Given(), LaunchPlan{}), HasSubstr("has no launcher"));
}

TEST(OrtedArgsTest, WhatIsMissingOrSaidTwiceIsRefused) {
  const Words given = Given();
  for (std::size_t left_out = 1; left_out < given.size(); left_out += 3) {
    const std::string key = given[left_out + 1];
    if (key == "plm_rsh_agent") continue;  // goes no further anyway
    Words words = given;
    const auto from = words.begin() + static_cast<std::ptrdiff_t>(left_out);
    words.erase(from, from + 3);
    EXPECT_THAT(WhyNot(words), HasSubstr(key)) << key;
  }
  Words twice = Given();
  twice.insert(twice.end(), {"-mca", "pml", "cm"});
  EXPECT_THAT(WhyNot(twice), HasSubstr("\"pml\" is said twice"));
}

TEST(OrtedArgsTest, EverySettingOfTheHeadMustHaveComeThrough) {
  const Words args = MpirunArgs(TwoHosts(), {"/run/x/worker", "--launch-daemon"}, {"w"});
  int settings = 0;
  for (std::size_t i = 0; i + 2 < args.size(); ++i) {
    if (args[i] != "--mca" || args[i + 1] == "plm_rsh_agent") continue;
    ++settings;
    Words words = Given();
    const auto key = std::find(words.begin(), words.end(), args[i + 1]);
    ASSERT_NE(key, words.end()) << args[i + 1];
    words.erase(key - 1, key + 2);
    EXPECT_THAT(WhyNot(words), HasSubstr(args[i + 1] + " is missing"));
  }
  EXPECT_EQ(settings, 7);
}

TEST(IsForRankTest, WhatTheLibrarySetsIsAndWhatCouldLoadAnObjectIsNot) {
  for (const char* const name :
       {"OMPI_COMM_WORLD_RANK", "OMPI_MCA_orte_hnp_uri", "OMPI_MCA_ess_base_vpid", "PMIX_RANK",
        "PMIX_NAMESPACE", "PMIX_SERVER_URI", "PMIX_SERVER_URI41", "PMIX_DSTORE_21_BASE_PATH",
        "OMPI_MCA_btl_tcp_if_include"}) {
    EXPECT_TRUE(IsForRank(name)) << name;
  }
  for (const char* const name : {"OMPI_MCA_mca_base_component_path",
                                 "PMIX_MCA_mca_base_component_path",
                                 "OMPI_MCA_mca_component_path",
                                 "PMIX_MCA_pmix_mca_base_component_path",
                                 "OMPI_MCA_mca_base_param_files",
                                 "OMPI_MCA_mca_base_param_file_path",
                                 "OMPI_MCA_mca_base_envar_file_prefix",
                                 "OMPI_MCA_orte_launch_agent",
                                 "LD_PRELOAD",
                                 "LD_LIBRARY_PATH",
                                 "OMPI_LD_PRELOAD_PREPEND_X",
                                 "OPAL_PREFIX",
                                 "PMIX_INSTALL_PREFIX",
                                 "OMPI_MCA_plm_rsh_agent",
                                 "PMIX_SERVER_URI_X",
                                 "OMPI_",
                                 "PMIX_",
                                 "",
                                 "PATH",
                                 "OMPI_COMM_WORLD_RANK2",
                                 "ompi_comm_world_rank"}) {
    EXPECT_FALSE(IsForRank(name)) << name;
  }
}

TEST(OrtedArgsTest, HugeCommandLinesAreRefusedInFewWords) {
  Words many = Given();
  for (int i = 0; i < 200; ++i) many.insert(many.end(), {"-mca", "pml", "ob1"});
  EXPECT_THAT(WhyNot(many), HasSubstr("words"));
  const std::string why = WhyNot(With("orte_node_regex", std::string(1 << 20, 'a')));
  EXPECT_THAT(why, HasSubstr("too long"));
  EXPECT_LT(why.size(), 200u);
}

}  // namespace
}  // namespace param::agent
