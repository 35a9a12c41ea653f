import { type CSSVariablesResolver, createTheme, type MantineColorsTuple } from "@mantine/core"

/** Buttons and controls take their colours from `tokens.css`, which knows the environment and the colour scheme. */
const accent: MantineColorsTuple = [
  "#e6f6f5",
  "#cfeae8",
  "#9fd6d2",
  "#6cc1bb",
  "#45b0a8",
  "#2ba69d",
  "#0b6f6a",
  "#0b6f6a",
  "#085a56",
  "#064844"
]

/** The dark surfaces of `tokens.css`, from the text to the page. */
const dark: MantineColorsTuple = [
  "#e5e9ef",
  "#c2cad5",
  "#9ea9b8",
  "#707b8b",
  "#3a434f",
  "#2b323c",
  "#1c2129",
  "#161a20",
  "#12161b",
  "#0e1115"
]

/** The head of a dialog is no banner of the page. */
const dialog = {
  transitionProps: { duration: 120 },
  closeButtonProps: { "aria-label": "Close" },
  attributes: { header: { role: "presentation" } }
}

export const theme = createTheme({
  primaryColor: "accent",
  primaryShade: 6,
  colors: { accent, dark },
  fontFamily: "var(--font)",
  fontFamilyMonospace: "var(--mono)",
  defaultRadius: "sm",
  cursorType: "pointer",
  respectReducedMotion: true,
  fontSizes: { xs: "11.5px", sm: "13px", md: "13.5px", lg: "15px", xl: "18px" },
  headings: { fontFamily: "var(--font)", fontWeight: "650" },
  components: {
    Button: { defaultProps: { size: "xs", fw: 550 } },
    TextInput: { defaultProps: { size: "xs" } },
    NumberInput: { defaultProps: { size: "xs" } },
    Select: { defaultProps: { size: "xs" } },
    MultiSelect: { defaultProps: { size: "xs" } },
    TagsInput: { defaultProps: { size: "xs" } },
    Textarea: { defaultProps: { size: "xs" } },
    Checkbox: { defaultProps: { size: "xs" } },
    Switch: { defaultProps: { size: "sm" } },
    // programs that read the page can wait for whatever is on its way
    Skeleton: { defaultProps: { "aria-busy": true } },
    Tooltip: { defaultProps: { openDelay: 350, withArrow: true, events: { hover: true, focus: true, touch: false } } },
    Modal: { defaultProps: { ...dialog, centered: true } },
    Drawer: { defaultProps: dialog },
    // the placeholder is no item, and a menu may have only items; without it, the first one takes the focus
    Menu: { defaultProps: { withInitialFocusPlaceholder: false } },
    Notification: { defaultProps: { closeButtonProps: { "aria-label": "Close" } } }
  }
})

const tint = (color: string, percent: number): string => `color-mix(in srgb, ${color} ${percent}%, var(--surface))`

const colors = {
  "--mantine-color-body": "var(--surface)",
  "--mantine-color-text": "var(--text)",
  "--mantine-color-dimmed": "var(--muted)",
  "--mantine-color-placeholder": "var(--muted)",
  "--mantine-color-default": "var(--surface)",
  "--mantine-color-default-hover": "var(--page)",
  "--mantine-color-default-border": "var(--line-strong)",
  "--mantine-color-default-color": "var(--text)",
  "--mantine-color-anchor": "var(--accent)",
  "--mantine-color-error": "var(--bad)",
  "--mantine-color-accent-filled": "var(--accent)",
  "--mantine-color-accent-filled-hover": "color-mix(in srgb, var(--accent) 88%, var(--text))",
  "--mantine-color-accent-light": tint("var(--accent)", 12),
  "--mantine-color-accent-light-hover": tint("var(--accent)", 18),
  "--mantine-color-accent-light-color": "var(--accent)",
  "--mantine-color-accent-outline": "var(--accent)",
  "--mantine-color-accent-text": "var(--accent)",
  "--mantine-primary-color-contrast": "var(--accent-text)",
  "--mantine-color-red-filled": "var(--bad)",
  "--mantine-color-red-filled-hover": "color-mix(in srgb, var(--bad) 88%, var(--text))",
  "--mantine-color-red-light": tint("var(--bad)", 12),
  "--mantine-color-red-light-color": "var(--bad)",
  "--mantine-color-gray-light": tint("var(--muted)", 12),
  "--mantine-color-gray-light-color": "var(--text)"
}

/** Mantine's own variables take the meanings of `tokens.css`, so that there is one palette. */
export const variables: CSSVariablesResolver = () => ({ variables: {}, light: colors, dark: colors })
