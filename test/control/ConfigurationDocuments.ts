import { Schema } from "effect"
import fc from "fast-check"
import { KeyPolicy } from "../../src/policy/KeyPolicy.ts"
import * as Policies from "../policy/Policies.ts"

const encodePolicy = Schema.encodeSync(KeyPolicy)

const some = <A>(values: ReadonlyArray<A>) => fc.subarray([...values])
const oneOf = <A>(values: ReadonlyArray<A>) => fc.constantFrom(...values)
const orNull = <A>(values: ReadonlyArray<A>) => oneOf<A | null>([null, ...values])

/** For each of `names` an entry, as `entry` makes it. */
const each = <Name, A>(names: ReadonlyArray<Name>, entry: (name: Name) => fc.Arbitrary<A>) =>
  fc.tuple(...names.map(entry)).map((entries): ReadonlyArray<A> => entries)

const policy = fc.oneof(fc.constant({}), Policies.policy.map(encodePolicy))

const guardrailPolicy = (guardrails: ReadonlyArray<string>) =>
  fc
    .record({ mandatory: some(guardrails), forbidden: some(guardrails), overridden: some(guardrails) })
    .map(({ forbidden, mandatory, overridden }) => ({
      mandatory_guardrails: mandatory,
      forbidden_guardrails: forbidden,
      guardrail_config_overrides: Object.fromEntries(
        overridden
          .filter((name) => !forbidden.includes(name))
          .map((name) => [name, name === "pii-redact" ? { restore_output: false } : { strict: true }])
      )
    }))

const guardrail = (name: string) =>
  fc.record({
    name: fc.constant(name),
    provider_kind: fc.constant("http"),
    description: oneOf(["", "looks"]),
    modes: oneOf([["pre_call"], ["post_call", "during_call"]]),
    default_on: fc.boolean(),
    failure_policy: oneOf(["fail_closed", "fail_open", "dry_run"]),
    config_schema: fc.constant({}),
    runtime_config: oneOf([{}, { b: 1, a: { c: [1.5, null] } }]),
    enabled: fc.boolean(),
    endpoint_url: oneOf(["https://guard.example/check?v=1", "http://127.0.0.1:9/"]),
    timeout_ms: oneOf([100, 1500, 10_000]),
    stream_mode: oneOf(["buffer", "window"]),
    window_chars: oneOf([64, 512, 16_384])
  })

const service = (projects: ReadonlyArray<string>) => (name: string) =>
  fc.record({
    name: fc.constant(name),
    project: orNull(projects),
    studio_service_id: orNull([`studio-${name}`]),
    route_pattern: oneOf([`/services/${name}/*`, `/tools/${name}`]),
    upstream_base_url: orNull(["https://service.example", "HTTP://127.0.0.1:80/"]),
    health_check_path: orNull(["/health"]),
    health_check_method: oneOf(["GET", "HEAD"]),
    enabled: fc.boolean(),
    allowed_methods: oneOf([["POST"], ["GET", "PUT"]]),
    timeout_ms: oneOf([1, 60_000]),
    max_body_bytes: oneOf([1, 2_097_152]),
    cost_mode: oneOf(["none", "fixed", "passthrough"]),
    estimated_cost_usd: oneOf([0, 0.1]),
    pricing_rules: oneOf([
      [],
      [{ name: "hd", json_pointer: "/quality", equals: "hd", cost_mode: "fixed", estimated_cost_usd: 0.3 }]
    ]),
    openapi_source_path: orNull(["/openapi.json"]),
    openapi_endpoints: oneOf([
      [],
      [{ method: "GET", path_template: "/items/{id}", operation_id: null, summary: "One", svc_default: false }]
    ]),
    endpoint_pricing_rules: oneOf([
      [],
      [{ method: "GET", path_template: "/items/{id}", operation_id: null, cost_mode: "none", estimated_cost_usd: null }]
    ]),
    fallback_services: oneOf([[], ["elsewhere"]])
  })

const key =
  (projects: ReadonlyArray<string>, services: ReadonlyArray<string>, guardrails: ReadonlyArray<string>) =>
  (id: string) =>
    fc.record({ project: orNull(projects), links: some(services) }).chain(({ links, project }) =>
      fc.record({
        id: fc.constant(id),
        owner_type: fc.constant(project === null ? "individual" : "project"),
        project: fc.constant(project),
        service_names: fc.constant(project === null ? links : []),
        name: orNull(["ada", "ben"]),
        team_id: orNull(["red", "blue"]),
        disabled: fc.boolean(),
        expires_at: orNull(["2999-01-01T00:00:00Z"]),
        rotation_due_at: orNull(["2998-01-01T01:00:00+01:00"]),
        policy,
        guardrail_policy: guardrailPolicy(guardrails)
      })
    )

const layers = (projects: ReadonlyArray<string>, guardrails: ReadonlyArray<string>) =>
  some([
    { kind: "global", scope: null },
    { kind: "team", scope: "red" },
    { kind: "route", scope: "/v1/responses" },
    { kind: "model", scope: "a/b" },
    ...projects.map((scope) => ({ kind: "project", scope }))
  ]).chain((chosen) =>
    each(chosen, (layer) =>
      fc
        .record(
          {
            policy,
            shared: fc.record({ daily_budget_usd: orNull([1, 20]) }),
            guardrail_policy: guardrailPolicy(guardrails)
          },
          { requiredKeys: ["policy", "guardrail_policy"] }
        )
        .map((restrictions) => ({ ...layer, ...restrictions }))
    )
  )

const passthrough = fc.record({
  enabled: fc.boolean(),
  allowed_paths: oneOf([["/v1/*"], ["/v1/files", "/health"]]),
  allowed_methods: oneOf([["get", "POST"], ["DELETE"]]),
  ui_exposure: oneOf(["disabled", "operator_only", "explicitly_exposed", "trusted_ingress"]),
  admin_api_exposure: oneOf(["disabled", "operator_only", "explicitly_exposed"]),
  guardrails: oneOf(["refuse", "skip"]),
  body_policies: oneOf(["refuse", "skip"]),
  ownership: oneOf(["project", "key", "shared"]),
  timeout_ms: oneOf([1, 600_000]),
  max_request_body_bytes: oneOf([1, 1_048_576]),
  max_response_body_bytes: oneOf([1, 1_048_576])
})

const frontDoor = fc.record({
  svc_key_header: oneOf(["X-Svc-Key", "X-Team-Key"]),
  identity_enabled: fc.boolean(),
  tenant_id: fc.constant("tenant"),
  audience: fc.constant("svc"),
  issuer: fc.constant("https://issuer.example"),
  oidc_discovery_url: fc.constant("https://issuer.example/.well-known/openid-configuration"),
  required_scope: orNull(["svc.use"]),
  required_role: orNull(["user"]),
  allowed_groups: oneOf([[], ["a", "b"]]),
  accepted_algorithms: oneOf([["RS256"], ["ES256", "RS512"]]),
  jwks_cache_ttl_seconds: oneOf([1, 300]),
  clock_skew_seconds: oneOf([0, 60]),
  trusted_gateway_header_enabled: fc.constant(false)
})

const price = (model: string) =>
  fc.record({
    model: fc.constant(model),
    input_usd_per_million: oneOf([0, 1.25, 0.1234567891]),
    output_usd_per_million: oneOf([0, 10]),
    cached_input_usd_per_million: orNull([0.125]),
    cache_write_usd_per_million: orNull([2])
  })

const provider = (name: string) =>
  fc.record({
    provider: fc.constant("internal-service"),
    name: fc.constant(name),
    base_url: oneOf(["https://one.example", "https://TWO.example:443/"]),
    enabled: fc.boolean(),
    credential_header_mode: fc.constant("custom_header"),
    credential_header_name: fc.constant("x-upstream-key"),
    credential_header_value_format: oneOf(["raw", "bearer"])
  })

/** Documents that can be applied over each other in any order, about the keys `ids`. */
export const documents = (ids: ReadonlyArray<string>) =>
  fc
    .record({ projects: some(["one", "two"]), guardrails: some(["g.1", "g.2"]), services: some(["s1", "s2"]) })
    .chain(({ guardrails, projects, services }) => {
      const known = [...guardrails, "pii-redact"]
      return fc.record({
        format: fc.constant("svc-configuration/1"),
        projects: fc.constant(projects.map((name) => ({ name }))),
        guardrails: each(guardrails, guardrail),
        services: each(services, service(projects)),
        service_links: each(projects, (project) => some(services).map((service_names) => ({ project, service_names }))),
        keys: each(ids, key(projects, services, known)),
        policy_layers: layers(projects, known),
        providers: some(["a", "b"]).chain((names) => each(names, provider)),
        credential_mappings: some(projects).chain((targets) =>
          each(targets, (target) => fc.boolean().map((enabled): object => ({ scope: "project", target, enabled })))
        ),
        model_prices: some(["m1", "m2"]).chain((models) => each(models, price)),
        upstream_passthrough: passthrough,
        studio_connection: fc.record({ base_url: orNull(["https://studio.example/base", "https://STUDIO.example//"]) }),
        front_door: frontDoor
      })
    })
