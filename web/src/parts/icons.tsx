// The few icons of the page, 16 x 16, in the colour of their text.
import type { ComponentChildren } from "preact";

function Icon({ children, size = 15 }: { children: ComponentChildren; size?: number }) {
    return (
        <svg width={size} height={size} viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
            {children}
        </svg>
    );
}

export const Logo = () => (
    <svg width="22" height="22" viewBox="0 0 32 32" aria-hidden="true">
        <rect width="32" height="32" rx="7" fill="#0b4a72" />
        <path d="M6 8c3 0 4 13 8 13h12" fill="none" stroke="#f2c14e" stroke-width="3" stroke-linecap="round" />
        <circle cx="10.2" cy="14.6" r="2.7" fill="#fff" />
    </svg>
);
export const SearchIcon = () => <Icon size={14}><circle cx="7" cy="7" r="4.5" /><path d="m10.5 10.5 3.5 3.5" /></Icon>;
export const FilterIcon = () => <Icon size={14}><path d="M2 3h12l-4.7 5.5V13l-2.6-1.5v-3z" /></Icon>;
export const SunIcon = () => <Icon><circle cx="8" cy="8" r="3" /><path d="M8 1.5v1M8 13.5v1M1.5 8h1M13.5 8h1M3.4 3.4l.7.7M11.9 11.9l.7.7M3.4 12.6l.7-.7M11.9 4.1l.7-.7" /></Icon>;
export const MoonIcon = () => <Icon><path d="M13.5 9.5A6 6 0 0 1 6.5 2.5a5.8 5.8 0 1 0 7 7z" /></Icon>;
export const SystemIcon = () => <Icon><rect x="1.8" y="2.5" width="12.4" height="8.5" rx="1.2" /><path d="M5.5 14h5" /></Icon>;
export const ColumnsIcon = () => <Icon size={14}><rect x="2" y="2.5" width="12" height="11" rx="1.5" /><path d="M6.2 2.5v11M10.2 2.5v11" /></Icon>;
export const ChartIcon = () => <Icon size={14}><path d="M2 2v12h12" /><path d="m4.5 10.5 3-4 2.5 2 3.5-5" /></Icon>;
export const DownloadIcon = () => <Icon size={14}><path d="M8 2v8M4.8 7 8 10.2 11.2 7M2.5 13.5h11" /></Icon>;
export const FolderIcon = () => <Icon size={14}><path d="M1.8 12.5v-9h4l1.5 1.8h6.9v7.2z" /></Icon>;
export const FileIcon = () => <Icon size={14}><path d="M3.5 1.8h6l3 3v9.4h-9z" /><path d="M9.3 2v3h3" /></Icon>;
export const CloseIcon = () => <Icon size={14}><path d="m3.5 3.5 9 9M12.5 3.5l-9 9" /></Icon>;
export const PauseIcon = () => <Icon size={13}><path d="M5 3v10M11 3v10" /></Icon>;
export const PlayIcon = () => <Icon size={13}><path d="M4.5 2.5v11l8.5-5.5z" /></Icon>;
export const StopIcon = () => <Icon size={13}><rect x="3.5" y="3.5" width="9" height="9" rx="1" /></Icon>;
export const MoreIcon = () => <Icon size={14}><path d="M3 8h.01M8 8h.01M13 8h.01" /></Icon>;
