import { NumberInput } from "@mantine/core"
import { useState } from "react"
import { call } from "../../api/control.ts"
import { partOf } from "../../shared/change/changed.ts"
import { FormDrawer } from "../../shared/change/FormDrawer.tsx"
import { useConfirm } from "../../shared/change/useConfirm.tsx"
import { LazySelect } from "../../shared/fields/LazySelect.tsx"
import { configure, type Family, families, limitNames, modes, type Route, type RoutePatch } from "./route.ts"

type Limits = { readonly [Name in (typeof limitNames)[number]]: number | null }

/** Sets the same mode or limits on all routes. What stays empty stays as it is. */
export const AllRoutesForm = ({
  onClose,
  routes
}: {
  readonly routes: Readonly<Record<Family, ReadonlyArray<Route>>>
  readonly onClose: () => void
}) => {
  const [mode, setMode] = useState<string | null>(null)
  const [limits, setLimits] = useState<Limits>({
    timeout_ms: null,
    max_request_body_bytes: null,
    max_response_body_bytes: null
  })
  // the page behind the form goes on to follow what others change
  const [base] = useState(() => allOf([...routes.a, ...routes.b]))
  const familyOf = ({ route_id }: Route): Family => (routes.a.some((one) => one.route_id === route_id) ? "a" : "b")
  const { ask, dialog } = useConfirm<AllRoutes>()
  const chosen = modes.find((one) => one === mode)
  const patch: RoutePatch = {
    ...(chosen !== undefined && { mode: chosen }),
    ...Object.fromEntries(limitNames.flatMap((name) => (limits[name] === null ? [] : [[name, limits[name]]]))),
    ...(limits.max_response_body_bytes !== null && { limits_streams: false })
  }
  const names = Object.keys(patch)
  return (
    <>
      <FormDrawer
        title="All routes"
        action="Show the difference"
        isBusy={false}
        isDisabled={names.length === 0}
        error={null}
        onSubmit={() =>
          ask({
            title: "Change all routes",
            action: "Change",
            guard: { base, reread, fieldsOf: (all) => valuesOf(all, names), changes: { ...patch } },
            run: async ({ routes }) =>
              allOf(
                await call("PATCH", "/admin-ui/admin/routes/config", {
                  body: { ...patch, expected_updated_at: timesOf(routes) }
                })
              ),
            undo: async (version: AllRoutes, after: AllRoutes) => {
              const times = timesOf(after.routes)
              for (const route of version.routes) {
                const { [route.route_id]: updated_at } = times
                await configure(familyOf(route), route.route_id, {
                  ...partOf(route, names),
                  ...(updated_at !== undefined && { expected_updated_at: updated_at })
                })
              }
            },
            done: "All routes are changed.",
            audit: { type: "family_a_route" },
            onDone: onClose
          })
        }
        onClose={onClose}
      >
        <LazySelect
          label="mode"
          placeholder="as it is"
          data={[...modes]}
          value={mode}
          onChange={setMode}
          clearable
          data-autofocus
        />
        {limitNames.map((name) => (
          <NumberInput
            key={name}
            label={name}
            placeholder="as it is"
            min={1}
            thousandSeparator=" "
            value={limits[name] ?? ""}
            onChange={(value) => setLimits((all) => ({ ...all, [name]: typeof value === "number" ? value : null }))}
          />
        ))}
      </FormDrawer>
      {dialog}
    </>
  )
}

interface AllRoutes {
  /** The latest of all routes. */
  readonly updated_at: string
  readonly routes: ReadonlyArray<Route>
}

const allOf = (routes: ReadonlyArray<Route>): AllRoutes => ({ updated_at: latestOf(routes), routes })

const timesOf = (routes: ReadonlyArray<Route>): Readonly<Record<string, string>> =>
  Object.fromEntries(routes.map(({ route_id, updated_at }) => [route_id, updated_at]))

const latestOf = (routes: ReadonlyArray<Route>): string =>
  routes.map(({ updated_at }) => updated_at).reduce((a, b) => (a > b ? a : b), "")

const reread = async (): Promise<AllRoutes> => {
  const read = await Promise.all(
    Object.values(families).map(({ group }) => call("GET", `/admin-ui/admin/${group}`, {}))
  )
  return allOf(read.flat())
}

/** The value that all routes have, or each value with its routes. */
const valuesOf = ({ routes }: AllRoutes, names: ReadonlyArray<string>) =>
  Object.fromEntries(
    names.map((name) => {
      const byValue = [...Map.groupBy(routes, (route) => Reflect.get(route, name))]
      const texts = byValue.map(([value, some]) => `${value}: ${some.map(({ route_id }) => route_id).join(", ")}`)
      return [name, byValue.length === 1 ? byValue[0]?.[0] : texts.join("; ")]
    })
  )
