import { ActionIcon, Menu, useMantineColorScheme } from "@mantine/core"
import { IconMoon, IconSun } from "@tabler/icons-react"

/** The colours in use, and what a click changes them to: light, dark, and as the system is. */
const useScheme = () => {
  const { colorScheme, setColorScheme } = useMantineColorScheme()
  const next = colorScheme === "light" ? "dark" : colorScheme === "dark" ? "auto" : "light"
  const name = colorScheme === "auto" ? "as the system" : colorScheme
  return {
    change: () => setColorScheme(next),
    icon: colorScheme === "dark" ? <IconMoon size={17} /> : <IconSun size={17} />,
    text: `Colours: ${name}`,
    label: `Colours: ${name}. Change to ${next === "auto" ? "those of the system" : next}.`
  }
}

export const SchemeSwitch = () => {
  const { change, icon, label, text } = useScheme()
  return (
    <ActionIcon variant="subtle" color="gray" onClick={change} title={text} aria-label={label}>
      {icon}
    </ActionIcon>
  )
}

/** The same in a menu, which stays open, so that a person sees the colours before choosing others. */
export const SchemeItem = () => {
  const { change, icon, label, text } = useScheme()
  return (
    <Menu.Item closeMenuOnClick={false} leftSection={icon} onClick={change} aria-label={label}>
      {text}
    </Menu.Item>
  )
}
