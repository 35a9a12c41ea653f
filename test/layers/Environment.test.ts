import { availableParallelism } from "node:os"
import { assert, describe, it } from "@effect/vitest"
import { Option, Redacted, Result } from "effect"
import * as Environment from "../../layers/Environment.ts"
import * as UpstreamBase from "../../src/policy/routes/UpstreamBase.ts"

describe("RABBITMQ_URL", () => {
  const read = (value: string) =>
    Result.match(Environment.read({ RABBITMQ_URL: value }), {
      onFailure: (mistakes) => mistakes.map(({ message, variable }) => `${variable} ${message}`).join(),
      onSuccess: ({ rabbitmqUrls }) => Option.getOrElse(rabbitmqUrls, () => []).map(Redacted.value)
    })

  it("is one URL, or those of a cluster's nodes in the order in which they are tried", () => {
    assert.deepStrictEqual(read(" "), [])
    assert.deepStrictEqual(read("amqp://a:5672"), ["amqp://a:5672"])
    assert.deepStrictEqual(read("amqp://u:p%2Cw@a/v , amqps://b"), ["amqp://u:p%2Cw@a/v", "amqps://b"])
  })

  it.each(["http://a", "amqp://a,b:5672", "amqp://a,", ",amqp://a", "amqp://u:canary,x@a", "amqp:"])(
    "refuses %s, and says what it must be",
    (value) => {
      const refusal = String(read(value))
      assert.match(refusal, /^RABBITMQ_URL must be a URL of the form amqp:.*, or several, separated by commas/)
      assert.notInclude(refusal, "canary")
    }
  )
})

describe("SVC_ENVIRONMENT", () => {
  const read = (value: string) =>
    Result.match(Environment.read({ SVC_ENVIRONMENT: value }), {
      onFailure: (mistakes) => mistakes.map(({ message, variable }) => `${variable} ${message}`).join(),
      onSuccess: ({ environment }) => Option.getOrNull(environment)
    })

  it("is a short name", () => {
    assert.strictEqual(read(" "), null)
    assert.strictEqual(read("production"), "production")
    assert.strictEqual(read(" Prüfstand 2/eu_west-1.b "), "Prüfstand 2/eu_west-1.b")
  })

  it.each(["a".repeat(33), "<b>", "-a", "a\tb", "a\u202eb"])("refuses %j", (value) => {
    assert.match(String(read(value)), /^SVC_ENVIRONMENT must be 1 to 32 letters/)
  })
})

describe("the upstreams that the environment names", () => {
  const read = (environment: Parameters<typeof Environment.read>[0]) =>
    Result.match(Environment.read(environment), {
      onFailure: (mistakes) => mistakes.map(({ message, variable }) => `${variable} ${message}`),
      onSuccess: ({ addressPolicy, unreadVariables, upstreams }) => ({
        unread: unreadVariables.map(({ variable }) => variable),
        trusted: addressPolicy.trustedOrigins,
        upstreams: Object.values(upstreams)
          .flatMap(Option.toArray)
          .map(({ base, name, serviceKey }) => [
            name,
            UpstreamBase.addressOf(base),
            Option.getOrNull(Option.map(serviceKey, Redacted.value))
          ])
      })
    })

  it("are one of both families and one of each, with a credential each, and may be called at private addresses", () => {
    const environment = {
      UPSTREAM_BASE_URL: "http://10.0.0.1:4000",
      UPSTREAM_OPENAI_BASE_URL: "https://api.openai.com/v1/",
      UPSTREAM_OPENAI_SERVICE_KEY: "sk-1",
      UPSTREAM_ANTHROPIC_BASE_URL: " https://api.anthropic.com ",
      UPSTREAM_ANTHROPIC_SERVICE_KEY: "sk-2",
      DIRECT_COMPAT_BASE_URL: "https://openrouter.ai/api/v1",
      DIRECT_COMPAT_SERVICE_KEY: "sk-3"
    }
    assert.deepStrictEqual(read(environment), {
      unread: [],
      trusted: ["http://10.0.0.1:4000", "https://api.openai.com", "https://api.anthropic.com", "https://openrouter.ai"],
      upstreams: [
        ["UPSTREAM_BASE_URL", "http://10.0.0.1:4000/v1", null],
        ["UPSTREAM_OPENAI_BASE_URL", "https://api.openai.com/v1", "sk-1"],
        ["UPSTREAM_ANTHROPIC_BASE_URL", "https://api.anthropic.com/v1", "sk-2"]
      ]
    })
  })

  it("a credential goes nowhere without its address, which is said", () => {
    assert.deepStrictEqual(read({ UPSTREAM_OPENAI_SERVICE_KEY: "sk", UPSTREAM_ANTHROPIC_SERVICE_KEY: "sk" }), [
      "UPSTREAM_OPENAI_BASE_URL is required, because UPSTREAM_OPENAI_SERVICE_KEY is set: for example https://api.openai.com/v1",
      "UPSTREAM_ANTHROPIC_BASE_URL is required, because UPSTREAM_ANTHROPIC_SERVICE_KEY is set: for example https://api.anthropic.com"
    ])
    assert.deepStrictEqual(read({ UPSTREAM_SERVICE_KEY: "sk" }), {
      unread: ["UPSTREAM_SERVICE_KEY"],
      trusted: [],
      upstreams: []
    })
  })

  it.each(["UPSTREAM_BASE_URL", "UPSTREAM_OPENAI_BASE_URL", "UPSTREAM_ANTHROPIC_BASE_URL", "DIRECT_COMPAT_BASE_URL"])(
    "%s is refused with the rule and an example, and without its value",
    (variable) => {
      const [refusal = ""] = [read({ [variable]: "https://h/v1?canary" })].flat()
      assert.include(
        refusal,
        `${variable} must not carry a query or a fragment: the gateway appends paths; for example https://models.example.com:4000`
      )
      assert.notInclude(refusal, "canary")
    }
  )
})

describe("variables that have no effect", () => {
  const provider = {
    IDENTITY_TENANT_ID: "t",
    IDENTITY_AUDIENCE: "api://gateway",
    IDENTITY_ISSUER: "https://login.example.com",
    IDENTITY_OIDC_DISCOVERY_URL: "https://login.example.com/.well-known/openid-configuration"
  }
  const secret = { TRUSTED_GATEWAY_HEADER_SECRET: "s".repeat(32) }

  const unread = (environment: Parameters<typeof Environment.read>[0]) =>
    Result.map(Environment.read(environment), ({ unreadVariables }) =>
      Object.fromEntries(unreadVariables.map(({ reason, variable }) => [variable, reason]))
    )

  it("are those without the one that turns their part on, which is named", () => {
    const environment = {
      ...secret,
      IDENTITY_AUDIENCE: "api://gateway",
      IDENTITY_REQUIRED_ROLE: "caller",
      DIRECT_COMPAT_OWNERSHIP: "key",
      GATEWAY_UPSTREAM_UI_ORIGIN: "https://ui.example.com",
      OTEL_SERVICE_NAME: "gateway",
      SVC_STUDIO_TOKEN: "studio-token",
      UPSTREAM_SERVICE_KEY: "sk"
    }
    assert.deepStrictEqual(
      unread(environment),
      Result.succeed({
        DIRECT_COMPAT_OWNERSHIP: "DIRECT_COMPAT_BASE_URL is not set",
        GATEWAY_UPSTREAM_UI_ORIGIN: "GATEWAY_UPSTREAM_UI_BIND_ADDR is not set",
        IDENTITY_AUDIENCE: "IDENTITY_AUTH_ENABLED is not true",
        IDENTITY_REQUIRED_ROLE: "IDENTITY_AUTH_ENABLED is not true, and TRUSTED_GATEWAY_HEADER_ENABLED is not true",
        OTEL_SERVICE_NAME: "OTEL_EXPORTER_OTLP_ENDPOINT is not set",
        SVC_STUDIO_TOKEN: "SVC_STUDIO_BASE_URL is not set",
        TRUSTED_GATEWAY_HEADER_SECRET: "TRUSTED_GATEWAY_HEADER_ENABLED is not true",
        UPSTREAM_SERVICE_KEY: "UPSTREAM_BASE_URL is not set"
      })
    )
  })

  it("are never those of a part that is on", () => {
    const environment = {
      ...provider,
      ...secret,
      IDENTITY_AUTH_ENABLED: "true",
      TRUSTED_GATEWAY_HEADER_ENABLED: "true",
      DIRECT_COMPAT_BASE_URL: "https://openrouter.ai/api/v1",
      DIRECT_COMPAT_SERVICE_KEY: "sk",
      DIRECT_COMPAT_OWNERSHIP: "key",
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318",
      OTEL_SERVICE_NAME: "gateway"
    }
    assert.deepStrictEqual(unread(environment), Result.succeed({}))
  })

  it("include the provider's, but not the common requirements, where only signed headers are accepted", () => {
    assert.deepStrictEqual(
      unread({ ...provider, ...secret, TRUSTED_GATEWAY_HEADER_ENABLED: "true" }),
      Result.succeed({
        IDENTITY_AUDIENCE: "IDENTITY_AUTH_ENABLED is not true",
        IDENTITY_ISSUER: "IDENTITY_AUTH_ENABLED is not true",
        IDENTITY_OIDC_DISCOVERY_URL: "IDENTITY_AUTH_ENABLED is not true"
      })
    )
  })
})

describe("signing in at the identity provider", () => {
  const client = { IDENTITY_SIGN_IN_CLIENT_ID: "svc", IDENTITY_SIGN_IN_CLIENT_SECRET: "canary-secret" }
  const origin = { GATEWAY_CONTROL_ORIGIN: "https://control.example.com" }
  const read = (environment: Parameters<typeof Environment.read>[0]) =>
    Result.map(Environment.read(environment), ({ oidcClient, unreadVariables }) => ({ oidcClient, unreadVariables }))

  it("takes a client, and what members of groups may do", () => {
    const environment = {
      ...client,
      ...origin,
      IDENTITY_ISSUER: "https://login.example.com",
      IDENTITY_SIGN_IN_GROUP_SCOPES: "cn=ops,dc=example=usage:read, keys:create; admins=*;",
      IDENTITY_SIGN_IN_REQUESTED_SCOPES: "openid profile groups"
    }
    const found = Result.getOrThrow(read(environment))
    assert.deepStrictEqual(found.unreadVariables, [])
    assert.deepInclude(Option.getOrThrow(found.oidcClient), {
      id: "svc",
      groupsClaim: "groups",
      requestedScopes: ["profile", "groups"],
      scopesOfGroups: [
        { group: "cn=ops,dc=example", scopes: ["usage:read", "keys:create"] },
        { group: "admins", scopes: ["*"] }
      ]
    })
  })

  const wrong: ReadonlyArray<readonly [variable: string, Readonly<Record<string, string>>]> = [
    ["IDENTITY_SIGN_IN_CLIENT_SECRET", { ...origin, IDENTITY_SIGN_IN_CLIENT_ID: "svc" }],
    ["IDENTITY_SIGN_IN_CLIENT_ID", { ...origin, IDENTITY_SIGN_IN_CLIENT_SECRET: "canary-secret" }],
    ["GATEWAY_CONTROL_ORIGIN", client],
    ...["admins", "=*", "admins=", "admins=root", "admins=*,root"].map(
      (groups) =>
        ["IDENTITY_SIGN_IN_GROUP_SCOPES", { ...client, ...origin, IDENTITY_SIGN_IN_GROUP_SCOPES: groups }] as const
    )
  ]

  it.each(wrong)("%s is refused in %o", (variable, environment) => {
    const mistakes = Result.getFailure(read(environment))
    assert.deepStrictEqual(
      Option.getOrThrow(mistakes).map((mistake) => mistake.variable),
      [variable]
    )
    assert.notInclude(JSON.stringify(mistakes), "canary")
  })

  it("says which variables have no effect without a client", () => {
    const { unreadVariables } = Result.getOrThrow(read({ IDENTITY_SIGN_IN_GROUP_SCOPES: "a=*" }))
    assert.deepStrictEqual(unreadVariables, [
      { variable: "IDENTITY_SIGN_IN_GROUP_SCOPES", reason: "IDENTITY_SIGN_IN_CLIENT_ID is not set" }
    ])
  })
})

describe("GATEWAY_WORKERS", () => {
  const read = (value: string) =>
    Result.match(Environment.read({ GATEWAY_WORKERS: value }), {
      onFailure: (mistakes) => mistakes.map(({ message, variable }) => `${variable} ${message}`).join(),
      onSuccess: ({ workers }) => Option.getOrUndefined(workers)
    })

  it("is a number of processes, or auto for one per processor", () => {
    assert.deepStrictEqual(["", "1", "64"].map(read), [undefined, 1, 64])
    assert.strictEqual(read("auto"), Math.min(64, availableParallelism()))
  })

  it.each(["0", "65", "2.5", "-1", "all"])("refuses %s", (value) => {
    assert.strictEqual(
      read(value),
      "GATEWAY_WORKERS must be a whole number from 1 to 64, or auto for one worker per processor"
    )
  })
})

describe("the limits that routes begin with", () => {
  const limitsOf = (environment: Parameters<typeof Environment.read>[0]) =>
    Result.map(Environment.read(environment), ({ routeLimits }) => routeLimits)

  it("are those that the environment has", () => {
    assert.deepStrictEqual(limitsOf({}), Result.succeed({}))
    assert.deepStrictEqual(
      limitsOf({ GATEWAY_DEFAULT_TIMEOUT_MS: "600000", GATEWAY_DEFAULT_MAX_RESPONSE_BODY_BYTES: "104857600" }),
      Result.succeed({ timeoutMs: 600_000, maxResponseBodyBytes: 104_857_600 })
    )
  })

  it.each(["GATEWAY_DEFAULT_MAX_REQUEST_BODY_BYTES", "GATEWAY_DEFAULT_MAX_RESPONSE_BODY_BYTES"])(
    "are refused beyond what a route may have: %s",
    (variable) => {
      const message = "must be a whole number from 1 to 104857600"
      for (const value of ["0", "104857601", "1 MiB"]) {
        assert.deepStrictEqual(limitsOf({ [variable]: value }), Result.fail([{ variable, message }]))
      }
    }
  )
})

describe("a word that is a member of every object", () => {
  it.each(["GATEWAY_ACCESS_LOG", "LOG_LEVEL"])("is refused like any other: %s", (variable) => {
    const read = Environment.read({ [variable]: "constructor" })
    assert.deepStrictEqual(
      Result.getOrThrow(Result.flip(read)).map((mistake) => mistake.variable),
      [variable]
    )
  })
})
