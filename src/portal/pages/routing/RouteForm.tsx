import { NumberInput, Select, Switch } from "@mantine/core"
import { useState } from "react"
import { call } from "../../api/control.ts"
import { changedOf } from "../../shared/change/changed.ts"
import { FormDrawer } from "../../shared/change/FormDrawer.tsx"
import { useConfirm } from "../../shared/change/useConfirm.tsx"
import { FieldDiff } from "../../shared/words/FieldDiff.tsx"
import { type Family, families, limitNames, modeSentences, modes, type Route, type RoutePatch } from "./route.ts"

interface Props {
  readonly family: Family
  readonly route: Route
  readonly onClose: () => void
}

/** Changes the mode and the limits of one route. */
export const RouteForm = ({ family, onClose, route }: Props) => {
  const { limits_streams, max_request_body_bytes, max_response_body_bytes, mode, ownership, timeout_ms } = route
  const first = { mode, timeout_ms, max_request_body_bytes, max_response_body_bytes, limits_streams, ownership }
  const [fields, setFields] = useState(first)
  const { ask, dialog } = useConfirm()
  const set = (part: Partial<typeof fields>) => setFields((before) => ({ ...before, ...part }))
  const changed = changedOf(first, fields)
  const names = Object.keys(changed)
  // setting the limit of responses alone would limit streams as well, so what the form shows is said with it
  const patch: RoutePatch = {
    ...changed,
    ...("max_response_body_bytes" in changed && { limits_streams: fields.limits_streams })
  }
  const back: RoutePatch = {
    ...Object.fromEntries(names.map((name) => [name, Reflect.get(first, name)])),
    limits_streams
  }
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
            body: (
              <FieldDiff
                before={Object.fromEntries(names.map((name) => [name, Reflect.get(first, name)]))}
                after={{ ...changed }}
              />
            ),
            run: () => configure(family, route.route_id, patch),
            undo: () => configure(family, route.route_id, back),
            done: `${route.route} is changed.`,
            audit: { type: families[family].audit, id: route.route_id },
            onDone: onClose
          })
        }
        onClose={onClose}
      >
        <Select
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
        <Select
          label="ownership"
          description="Which keys may use the objects that a key created at the upstream."
          data={[...new Set(["project", "key", "shared", ownership])]}
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

const configure = (family: Family, route_id: string, body: RoutePatch) =>
  family === "a"
    ? call("PATCH", "/admin-ui/admin/family-a-routes/:route_id/config", { params: { route_id }, body })
    : call("PATCH", "/admin-ui/admin/family-b-routes/:route_id/config", { params: { route_id }, body })
