import { Button, Menu } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { IconCode } from "@tabler/icons-react"
import { call } from "../../api/control.ts"
import type { BodyOf } from "../../api/Endpoints.ts"
import { failureOf } from "../../api/failure.ts"
import { useAllowed } from "../../api/session.ts"
import { prettyOf } from "./format.ts"

/** Sections of a configuration document. */
export type ConfigurationSections = Omit<BodyOf<"POST", "/admin-ui/admin/configuration/plan">, "format">

interface Props {
  /** The request that the page makes: `GET /admin-ui/admin/keys?state=active`. */
  readonly method?: string
  readonly address: string
  readonly body?: unknown
  /** Other requests of the page, where one does not have all of it. */
  readonly and?: ReadonlyArray<string>
  /** The same as an entry of the configuration document, where it has one. */
  readonly configuration?: ConfigurationSections | undefined
  /** The sections of the configuration document that have what the page shows. They are read once they are copied. */
  readonly sections?: ReadonlyArray<Section>
}

type Section = keyof ConfigurationSections

/** All sections of a document: those that are not asked for are left out. */
const allSections: Readonly<Record<Section, true>> = {
  projects: true,
  guardrails: true,
  services: true,
  service_links: true,
  keys: true,
  policy_layers: true,
  providers: true,
  credential_mappings: true,
  model_prices: true,
  routes: true,
  upstream_passthrough: true,
  studio_connection: true,
  front_door: true
}

const isSection = (name: string): name is Section => Object.hasOwn(allSections, name)

/** A document with these sections alone. */
const documentOf = (sections: ReadonlyArray<Section>) =>
  call("GET", "/admin-ui/admin/configuration", {
    query: {
      omit: Object.keys(allSections)
        .filter(isSection)
        .filter((name) => !sections.includes(name))
    }
  })

/** The paths that a gateway key opens. */
const ofHolders = "/admin-ui/v1/"

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

export const curlOf = ({ address, body, method = "GET" }: Pick<Props, "method" | "address" | "body">): string =>
  [
    `curl -s ${method === "GET" ? "" : `-X ${method} `}${quoted(window.location.origin + address)}`,
    `-H "authorization: Bearer $${address.startsWith(ofHolders) ? "KEY" : "OPERATOR"}"`,
    ...(body === undefined ? [] : [`-H 'content-type: application/json' -d ${quoted(JSON.stringify(body))}`])
  ].join(" \\\n  ")

/** Browsers let a page copy as long as a click is fresh: a text that is still read is promised to them in it. */
const write = (text: string | Promise<string>): Promise<void> => {
  if (typeof text === "string") return navigator.clipboard.writeText(text)
  if (!("ClipboardItem" in window)) return text.then(write)
  const type = "text/plain"
  return navigator.clipboard.write([new ClipboardItem({ [type]: text.then((read) => new Blob([read], { type })) })])
}

const copy = async (text: string | Promise<string>, what: string) => {
  try {
    await write(text)
    notifications.show({ message: `${what} is copied.` })
  } catch {
    const message = await Promise.resolve(text).then(
      () => "The browser did not let the page copy.",
      (cause: unknown) => failureOf(cause).message
    )
    notifications.show({ message, color: "red" })
  }
}

/** Everything that a page shows or does can be done without it. */
export const CopyAs = ({ address, and = [], body, configuration, method = "GET", sections }: Props) => {
  const mayExport = useAllowed("operators:manage")
  const commands = [curlOf({ method, address, body }), ...and.map((other) => curlOf({ address: other }))]
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="default" leftSection={<IconCode size={14} />}>
          Copy as
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => copy(commands.join("\n"), and.length === 0 ? "The command" : "The commands")}>
          curl
        </Menu.Item>
        {sections !== undefined && mayExport && (
          <Menu.Item onClick={() => copy(documentOf(sections).then(prettyOf), "The configuration")}>
            configuration
          </Menu.Item>
        )}
        {configuration !== undefined && (
          <Menu.Item onClick={() => copy(prettyOf(configuration), "The configuration")}>configuration</Menu.Item>
        )}
      </Menu.Dropdown>
    </Menu>
  )
}
