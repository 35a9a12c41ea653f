import { Button, Group, Stack } from "@mantine/core"
import { useState } from "react"
import { useTextSearch } from "../../address/search.ts"
import { call } from "../../api/control.ts"
import { useApi, useApiWrite } from "../../api/queries.ts"
import { useAllowed } from "../../api/session.ts"
import { useTell } from "../../shared/change/useTell.tsx"
import { ChangeDialog } from "../../shared/dialogs/ChangeDialog.tsx"
import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import { LinkButton } from "../../shared/links/LinkButton.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { ChangeList } from "../../shared/policy/ChangeList.tsx"
import { fieldText, restrictingOf } from "../../shared/policy/fields.ts"
import { ImpactNote } from "../../shared/policy/Impact.tsx"
import { usePolicyFields } from "../../shared/policy/usePolicyFields.ts"
import { CopyAs } from "../../shared/words/CopyAs.tsx"
import { type Fact, Facts } from "../../shared/words/Facts.tsx"
import { JsonView } from "../../shared/words/JsonView.tsx"
import { StatusWord } from "../../shared/words/StatusWord.tsx"
import { When } from "../../shared/words/When.tsx"
import { LayerEditor } from "./editor/LayerEditor.tsx"
import { LayerReview } from "./editor/LayerReview.tsx"
import {
  configurationOf,
  type Layer,
  layerName,
  layerPath,
  layersPath,
  staleAfterLayers,
  upsertOf,
  withoutLayer
} from "./words/layer.ts"

/** A layer beside the matrix. */
export const LayerDetail = ({ id }: { readonly id: string }) => {
  const query = useApi(layerPath, { params: { id } })
  const maySeeAudit = useAllowed("audit:read")
  const layer = query.data
  return (
    <Stack gap="sm">
      {layer?.id === id && <Actions of={layer} />}
      <Panel query={query} height={240}>
        {layer !== undefined && <LayerFacts of={layer} />}
      </Panel>
      {maySeeAudit && <ChangeList target="policy_layer" id={id} />}
    </Stack>
  )
}

const LayerFacts = ({ of: layer }: { readonly of: Layer }) => {
  const fields = usePolicyFields().data?.fields ?? []
  const factsOf = (prefix: string, values: object): ReadonlyArray<Fact> =>
    fields.flatMap((field) => {
      const found = restrictingOf([field], { ...values })
      return Object.hasOwn(found, field.field)
        ? [[`${prefix}${field.field}`, fieldText(field, found[field.field])] as const]
        : []
    })
  const { guardrail_config_overrides: overrides, ...guardrails } = layer.guardrail_policy
  return (
    <Stack gap="sm">
      <Facts
        facts={[
          ["Layer", <ForeignText key="name">{layerName(layer)}</ForeignText>],
          [
            "State",
            <span key="state">
              <StatusWord meaning={layer.enabled ? "good" : "idle"}>{layer.enabled ? "on" : "off"}</StatusWord>{" "}
              {!layer.enabled && "It keeps its settings and restricts nothing."}
            </span>
          ],
          ...factsOf("", layer.policy),
          ...factsOf("shared.", layer.shared),
          ...Object.entries(guardrails)
            .filter(([, names]) => names.length > 0)
            .map(([name, names]): Fact => [name, names.join(", ")]),
          ["Changed", <When key="changed" at={layer.updated_at} />],
          ["Version", layer.policy.policy_version]
        ]}
      />
      {Object.keys(overrides).length > 0 && <JsonView label="guardrail_config_overrides" value={overrides} />}
    </Stack>
  )
}

const Actions = ({ of: layer }: { readonly of: Layer }) => {
  const [dialog, setDialog] = useState<"edit" | "switch" | "delete">()
  const close = () => setDialog(undefined)
  return (
    <Group gap={6}>
      <Button onClick={() => setDialog("edit")}>Edit</Button>
      <Button variant="default" onClick={() => setDialog("switch")}>
        {layer.enabled ? "Switch off" : "Switch on"}
      </Button>
      <LinkButton
        path="/policies/simulate"
        search={{ kind: layer.kind, ...(layer.scope_id !== null && { scope: layer.scope_id }) }}
      >
        Try a change
      </LinkButton>
      <Button variant="default" color="red" onClick={() => setDialog("delete")}>
        Delete
      </Button>
      <CopyAs method="POST" address={layersPath} body={upsertOf(layer)} configuration={configurationOf(layer)} />
      {dialog === "edit" && <LayerEditor layer={layer} onClose={close} />}
      {dialog === "switch" && (
        <LayerReview layer={layer} changes={{ enabled: !layer.enabled }} onClose={close} onDone={close} />
      )}
      {dialog === "delete" && <DeleteLayer of={layer} onClose={close} />}
    </Group>
  )
}

const DeleteLayer = ({ of: layer, onClose }: { readonly of: Layer; readonly onClose: () => void }) => {
  const { change } = useTextSearch()
  const remove = useApiWrite("DELETE", layerPath, staleAfterLayers)
  const tell = useTell()
  const name = layerName(layer)
  const done = () => {
    tell({
      done: `The layer of ${name} is deleted.`,
      audit: { type: "policy_layer", id: layer.id },
      undo: () => call("POST", layersPath, { body: { ...upsertOf(layer), expected_updated_at: null } })
    })
    change({ open: undefined })
  }
  return (
    <ChangeDialog
      title={`Delete the layer of ${name}`}
      action="Delete it"
      name={layer.project_name ?? layer.scope_id ?? "all keys"}
      isBusy={remove.isPending}
      error={remove.error}
      onClose={onClose}
      onConfirm={() => remove.mutate({ params: { id: layer.id } }, { onSuccess: done })}
    >
      <ImpactNote proposal={withoutLayer(layer)} />
    </ChangeDialog>
  )
}
