import { Autocomplete, Skeleton } from "@mantine/core"
import { useDebouncedValue } from "@mantine/hooks"
import { type ReactNode, useEffect, useEffectEvent, useState } from "react"
import { useTextSearch } from "../../address/search.ts"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { Panel } from "../../shared/page/Panel.tsx"
import { Snippets } from "../../shared/snippets/Snippets.tsx"
import { toolOf } from "../../shared/snippets/tools.ts"
import { Command } from "./common/Command.tsx"
import { useModels } from "./common/useModels.ts"
import styles from "./My.module.css"
import { Arrivals } from "./use/Arrivals.tsx"
import { KeyTest } from "./use/KeyTest.tsx"

/** How to use the key: settings of a tool to copy, a test, and the first request as it arrives. */
const UsePage = () => {
  const { change, text } = useTextSearch()
  const models = useModels()
  const model = text("model") ?? models.first ?? "any"
  const tool = toolOf(text("tool"))
  // until the models are there, nobody knows which one to write into the settings
  const isWaiting = text("model") === undefined && models.query.isPending
  const price = [...models.priced, ...models.used].find((known) => known.model === model)
  return (
    <>
      <PageHeader
        title="Use it"
        lead="Pick your tool, copy its settings, and see your first request arrive."
        actions={<Command address="/admin-ui/v1/me/models" />}
      />
      <div className={styles.stack}>
        <Panel title="Model" query={models.query} height={36}>
          <ModelField names={models.names} model={model} onChosen={(name) => change({ model: name })} />
        </Panel>
        <Panel title="Settings" isBusy={isWaiting}>
          <KeptPlace isWaiting={isWaiting}>
            <Snippets model={model} tool={tool.id} onTool={(id) => change({ tool: id })} />
          </KeptPlace>
        </Panel>
        <Panel title="Does it work?" isBusy={isWaiting}>
          <KeptPlace isWaiting={isWaiting}>
            <KeyTest tool={tool.id} model={model} price={price} />
          </KeptPlace>
        </Panel>
        <Arrivals />
      </div>
    </>
  )
}

interface KeptPlaceProps {
  readonly isWaiting: boolean
  readonly children: ReactNode
}

/** Keeps the place of content that is not known yet, so that nobody can see, read or press it. */
const KeptPlace = ({ children, isWaiting }: KeptPlaceProps) => (
  <Skeleton visible={isWaiting} aria-busy={isWaiting}>
    <div style={{ visibility: isWaiting ? "hidden" : undefined }}>{children}</div>
  </Skeleton>
)

interface FieldProps {
  readonly names: ReadonlyArray<string>
  readonly model: string
  readonly onChosen: (name: string | undefined) => void
}

const typingMs = 300

/** The rest of the page follows once a person pauses, as each letter would be another model. */
const ModelField = ({ model, names, onChosen }: FieldProps) => {
  const [typed, setTyped] = useState<string>()
  const [paused] = useDebouncedValue(typed, typingMs)
  const follow = useEffectEvent((name: string) => {
    if (name !== model) onChosen(name || undefined)
  })
  useEffect(() => {
    if (paused !== undefined) follow(paused.trim())
  }, [paused])
  return (
    <Autocomplete
      aria-label="Model"
      size="sm"
      maw={420}
      maxLength={256}
      data={[...names]}
      limit={50}
      value={typed ?? model}
      onChange={setTyped}
      onOptionSubmit={onChosen}
    />
  )
}

export default UsePage
