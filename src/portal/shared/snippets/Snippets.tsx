import { Chip, Group } from "@mantine/core"
import { useId, useState } from "react"
import { installation } from "../../api/installation.ts"
import { CodeBlock } from "../words/CodeBlock.tsx"
import styles from "./Snippets.module.css"
import { toolOf, tools } from "./tools.ts"

interface Props {
  /** The secret of the key, where it is shown this once. Without it, snippets read the variable `KEY`. */
  readonly secret?: string | undefined
  /** A model that the key may call. */
  readonly model?: string | undefined
  /** The id of the tool and what changes it, where the address has it. Without them the component remembers it. */
  readonly tool?: string | undefined
  readonly onTool?: (id: string) => void
}

/** Where a program that the person starts on this machine finds the gateway, unless the server says otherwise. */
const usualUrl = "http://127.0.0.1:8080"

/** How to use a key with a tool: the person picks it and copies its settings, filled in for this installation. */
export const Snippets = ({ model = "any", onTool, secret, tool }: Props) => {
  const id = useId()
  const [picked, setPicked] = useState<string>()
  const current = toolOf(onTool === undefined ? picked : tool)
  const url = installation.gateway_url
  const place = { gatewayUrl: (url ?? usualUrl).replace(/\/+$/, ""), key: secret, model }
  return (
    <div className={styles.snippets}>
      <Chip.Group value={current.id} onChange={onTool ?? setPicked}>
        <Group gap={6} role="radiogroup" aria-label="Tool">
          {tools.map((one) => (
            <Chip
              key={one.id}
              value={one.id}
              size="sm"
              variant="outline"
              name={`${id}-tool`}
              classNames={{ label: styles.tool ?? "" }}
            >
              {one.label}
            </Chip>
          ))}
        </Group>
      </Chip.Group>
      {url === null && (
        <p className={styles.hint}>
          The server does not say where the gateway is. If it is elsewhere, replace <code>{usualUrl}</code>.
        </p>
      )}
      {current.note !== undefined && <p className={styles.hint}>{current.note}</p>}
      {current.parts(place).map((part) => (
        <div key={part.label} className={styles.part}>
          <h3>{part.label}</h3>
          {part.hint !== undefined && <p className={styles.hint}>{part.hint}</p>}
          <CodeBlock text={part.text} label={part.label} />
        </div>
      ))}
    </div>
  )
}
