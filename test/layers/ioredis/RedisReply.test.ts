import { assert, describe, it } from "@effect/vitest"
import { refused } from "../../../layers/ioredis/RedisReply.ts"

describe("what Redis answers in the place of a reply", () => {
  it.each([
    ["LOADING Redis is loading the dataset in memory", true],
    ["OOM command not allowed when used memory > 'maxmemory'.", true],
    ["OOM command not allowed when used memory > 'maxmemory'. script: 402d834, on @user_script:40.", true],
    ["MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.", true],
    ["NOREPLICAS Not enough good replicas to write.", true],
    // as Redis 6.2 says it
    [
      "ERR Error running script (call to f_a1): @user_script:2: @user_script: 2: -OOM command not allowed when used " +
        "memory > 'maxmemory'.",
      true
    ],
    [
      "ERR Error running script (call to f_a1): @user_script:2: -READONLY You can't write against a read only replica.",
      true
    ],
    ["ERR Error running script (call to f_a1): @user_script:2: -WRONGTYPE Operation against a key", false],
    ["WRONGTYPE Operation against a key holding the wrong kind of value", false],
    ["ERR unknown command 'OOM'", false],
    ["NOPERM this user has no permissions", false],
    ["", false]
  ])("%s: may succeed later, %s", (message, retryable) => {
    assert.deepInclude(refused("script", message), { retryable, message })
  })
})
