import { NumberInput, Select } from "@mantine/core"
import { useState } from "react"
import { call } from "../../api/control.ts"
import { FormDrawer } from "../../shared/change/FormDrawer.tsx"
import { useConfirm } from "../../shared/change/useConfirm.tsx"
import { limitNames, modes, type Route, type RoutePatch } from "./route.ts"

type Limits = { readonly [Name in (typeof limitNames)[number]]: number | null }

/** Sets the same mode or limits on all routes. What stays empty stays as it is. */
export const AllRoutesForm = ({
  onClose,
  routes
}: {
  readonly routes: ReadonlyArray<Route>
  readonly onClose: () => void
}) => {
  const [mode, setMode] = useState<string | null>(null)
  const [limits, setLimits] = useState<Limits>({
    timeout_ms: null,
    max_request_body_bytes: null,
    max_response_body_bytes: null
  })
  const { ask, dialog } = useConfirm()
  const chosen = modes.find((one) => one === mode)
  const patch: RoutePatch = {
    ...(chosen !== undefined && { mode: chosen }),
    ...Object.fromEntries(limitNames.flatMap((name) => (limits[name] === null ? [] : [[name, limits[name]]]))),
    ...(limits.max_response_body_bytes !== null && { limits_streams: false })
  }
  const names = Object.keys(patch)
  const differing = routes.filter((route) =>
    names.some((name) => Reflect.get(route, name) !== Reflect.get(patch, name))
  )
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
            body: (
              <>
                <ul>
                  {names.map((name) => (
                    <li key={name}>
                      <code>{name}</code> {String(Reflect.get(patch, name))}
                    </li>
                  ))}
                </ul>
                <p>
                  {differing.length} of {routes.length} routes change:{" "}
                  <code>{differing.map(({ route_id }) => route_id).join(", ")}</code>
                </p>
              </>
            ),
            run: () => call("PATCH", "/admin-ui/admin/routes/config", { body: patch }),
            done: "All routes are changed.",
            audit: { type: "family_a_route", id: "" },
            onDone: onClose
          })
        }
        onClose={onClose}
      >
        <Select
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
