import { Schema } from "effect"
import { read } from "../Guides.ts"

const Source = Schema.Struct({ type: Schema.String, uid: Schema.String })
const Target = Schema.Struct({
  refId: Schema.String,
  datasource: Source,
  expr: Schema.String,
  legendFormat: Schema.String
})
export const Panel = Schema.Struct({
  id: Schema.Int,
  type: Schema.Literals(["row", "timeseries", "stat"]),
  title: Schema.String,
  description: Schema.optionalKey(Schema.String),
  datasource: Schema.optionalKey(Source),
  gridPos: Schema.Struct({ h: Schema.Int, w: Schema.Int, x: Schema.Int, y: Schema.Int }),
  fieldConfig: Schema.optionalKey(
    Schema.Struct({
      defaults: Schema.Struct({ unit: Schema.optionalKey(Schema.String) }),
      overrides: Schema.Array(Schema.Unknown)
    })
  ),
  targets: Schema.optionalKey(Schema.Array(Target))
})
export type Panel = typeof Panel.Type

const Dashboard = Schema.Struct({
  uid: Schema.String,
  title: Schema.String,
  schemaVersion: Schema.Literal(39),
  templating: Schema.Struct({ list: Schema.Array(Schema.Struct({ name: Schema.String, type: Schema.String })) }),
  panels: Schema.Array(Panel)
})
export type Dashboard = typeof Dashboard.Type

export const dashboards: ReadonlyMap<string, Dashboard> = new Map(
  ["gateway", "messaging"].map((name) => [
    name,
    Schema.decodeUnknownSync(Schema.fromJsonString(Dashboard))(read(`deploy/grafana/dashboards/${name}.json`))
  ])
)

/** A query as Prometheus gets it once an operator has chosen all jobs and instances. */
export const queryOf = ({ expr }: Pick<typeof Target.Type, "expr">): string =>
  expr.replaceAll("$__rate_interval", "5m").replaceAll(/"\$(?:job|instance)"/g, '".*"')

/** The variable by which an operator chooses the data source. */
export const chosenSource = `$${"{datasource}"}`

/** What a panel lacks to be read. */
export const missingIn = ({
  datasource,
  description = "",
  fieldConfig,
  targets = [],
  type
}: Panel): ReadonlyArray<string> =>
  type === "row"
    ? []
    : [
        ...(fieldConfig?.defaults.unit === undefined ? ["unit"] : []),
        ...(description === "" ? ["description"] : []),
        ...(targets.length === 0 ? ["targets"] : []),
        ...([datasource, ...targets.map((target) => target.datasource)].every((source) => source?.uid === chosenSource)
          ? []
          : ["datasource"])
      ]
