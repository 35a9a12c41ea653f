import { NumberInput, Switch } from "@mantine/core"
import { useState } from "react"
import { call } from "../../api/control.ts"
import { changedOf, partOf } from "../../shared/change/changed.ts"
import { FormDrawer } from "../../shared/change/FormDrawer.tsx"
import { useConfirm } from "../../shared/change/useConfirm.tsx"
import { LazySelect } from "../../shared/fields/LazySelect.tsx"
import {
  configure,
  type Family,
  families,
  limitNames,
  modeSentences,
  modes,
  type Route,
  type SingleRoutePatch
} from "./route.ts"

interface Props {
  readonly family: Family
  readonly route: Route
  readonly onClose: () => void
}

/** Changes the mode and the limits of one route. */
export const RouteForm = ({ family, onClose, route }: Props) => {
  const first = fieldsOf(route)
  const [fields, setFields] = useState(first)
  const { ask, dialog } = useConfirm<Route>()
  const set = (part: Partial<typeof fields>) => setFields((before) => ({ ...before, ...part }))
  const changed = changedOf(first, fields)
  const names = Object.keys(changed)
  // setting the limit of responses alone would limit streams as well, so what the form shows is said with it
  const patch: SingleRoutePatch = {
    ...changed,
    ...("max_response_body_bytes" in changed && { limits_streams: fields.limits_streams })
  }
  const backTo = (version: Route): SingleRoutePatch => ({
    ...partOf(fieldsOf(version), names),
    limits_streams: version.limits_streams
  })
  return (
    <>
      <FormDrawer
        title={route.route}
        action="Show the difference"
        isBusy={false}
        isDisabled={names.length === 0}
        error={null}
        onSubmit={() =>
          ask({
            title: `Change ${route.route}`,
            action: "Change",
            guard: {
              base: route,
              reread: () => reread(family, route.route_id),
              fieldsOf: (version) => ({ ...fieldsOf(version), enabled: version.enabled }),
              changes: { ...changed }
            },
            run: ({ updated_at }: Route) =>
              configure(family, route.route_id, { ...patch, expected_updated_at: updated_at }),
            undo: (version: Route, { updated_at }: Route) =>
              configure(family, route.route_id, { ...backTo(version), expected_updated_at: updated_at }),
            done: `${route.route} is changed.`,
            audit: { type: families[family].audit, id: route.route_id },
            onDone: onClose
          })
        }
        onClose={onClose}
      >
        <LazySelect
          label="mode"
          description={modeSentences[fields.mode]}
          data={[...modes]}
          value={fields.mode}
          allowDeselect={false}
          onChange={(value) => set({ mode: modes.find((one) => one === value) ?? fields.mode })}
          data-autofocus
        />
        {limitNames.map((name) => (
          <NumberInput
            key={name}
            label={name}
            value={fields[name]}
            min={1}
            thousandSeparator=" "
            onChange={(value) => typeof value === "number" && set({ [name]: value })}
          />
        ))}
        <Switch
          label="limits_streams: max_response_body_bytes cuts event streams too"
          checked={fields.limits_streams}
          onChange={({ currentTarget }) => set({ limits_streams: currentTarget.checked })}
        />
        <LazySelect
          label="ownership"
          description="Which keys may use the objects that a key created at the upstream."
          data={[...new Set(["project", "key", "shared", first.ownership])]}
          value={fields.ownership}
          allowDeselect={false}
          onChange={(value) =>
            value !== null && setFields((before) => Object.assign({ ...before }, { ownership: value }))
          }
        />
      </FormDrawer>
      {dialog}
    </>
  )
}

const fieldsOf = ({
  limits_streams,
  max_request_body_bytes,
  max_response_body_bytes,
  mode,
  ownership,
  timeout_ms
}: Route) => ({ mode, timeout_ms, max_request_body_bytes, max_response_body_bytes, limits_streams, ownership })

/** No endpoint has a single route. */
const reread = async (family: Family, route_id: string) => {
  const routes = await call("GET", `/admin-ui/admin/${families[family].group}`, {})
  return routes.find((one) => one.route_id === route_id)
}
