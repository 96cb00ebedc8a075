"""The paper's nine datasets, and those that a data folder describes by itself."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Literal

from tabnsm.errors import InvalidDataError
from tabnsm_bench.datasets.descriptor import Descriptor, Source, read_sidecar

ENDINGS = (".parquet", ".csv", ".tsv", ".csv.gz", ".tsv.gz", ".feather", ".arrow")


def _openml(number: int) -> Source:
    page = f"https://www.openml.org/search?type=data&status=active&id={number}"
    return Source("openml", page, openml_id=number)


def _data_gov(host: str, view: str, slug: str) -> Source:
    url = f"https://{host}/api/views/{view}/rows.csv?accessType=DOWNLOAD"
    return Source("file", f"https://catalog.data.gov/dataset/{slug}", url=url)


def _pinned(repository: str, commit: str, path: str, sha256: str) -> Source:
    page = f"https://github.com/{repository}"
    url = f"https://raw.githubusercontent.com/{repository}/{commit}/{path}"
    return Source("file", page, url=url, sha256=sha256)


# Rows and features as in the paper's table of datasets; pages as in its table of sources.
_NINE = (
    Descriptor(
        key="sarcos",
        title="Sarcos robot arm",
        target="V22",
        paper="SA",
        rows=48_933,
        features=27,
        sources=(_openml(43873),),
        licence="none stated by its publisher",
        leaks="The torques of the other six joints (V23 to V28) are inputs, as in the paper. Rows "
        "follow each other in time, so that a random split has near-copies on both sides.",
    ),
    Descriptor(
        key="cpu_small",
        title="CPU activity",
        target="usr",
        paper="CP",
        rows=8_192,
        features=12,
        sources=(
            _pinned(
                "renatopp/arff-datasets",
                "c59f172882592bb58982cc54d2d3c8a2b57e9b73",
                "regression/cpu.small.arff",
                "be6a626bd91804c81cc2f26d015f8df23afcce7af952c522c8dfe06bc187203c",
            ),
            _openml(42841),
        ),
        licence="none stated by its publisher",
    ),
    Descriptor(
        key="topo_2_1",
        title="Topo 2.1",
        target="oz267",
        paper="TO",
        rows=8_885,
        features=266,
        sources=(_openml(422),),
        licence="public, as OpenML states",
    ),
    Descriptor(
        key="nacc_scan",
        title="SCAN neuroimaging",
        target="NACCMMSE",
        paper="SC",
        rows=4_355,
        features=386,
        reader="nacc",
        sources=(Source("request", "https://scan.naccdata.org/"),),
        licence="NACC Data Use Agreement; the file must not be passed on",
        leaks="The items of the test add up to the score: columns that begin with MMSE are left "
        "out. The paper does not say which columns it used.",
    ),
    Descriptor(
        key="la_crime",
        title="Crime in Los Angeles since 2020",
        target="AREA",
        paper="CD",
        rows=1_004_991,
        features=401,
        sources=(_data_gov("data.lacity.org", "2nrs-mtv8", "crime-data-from-2020-to-present"),),
        licence="CC0 1.0, as the portal states",
        leaks="AREA follows from AREA NAME, and is Rpt Dist No // 100; both are inputs, as in the "
        "paper, so that the task is nearly deterministic.",
    ),
    Descriptor(
        key="us_chronic_disease",
        title="U.S. chronic disease indicators",
        target="DataValue",
        drop=("DataValueAlt",),
        paper="ChD",
        rows=309_215,
        features=405,
        sources=(_data_gov("data.cdc.gov", "hksd-2xuw", "u-s-chronic-disease-indicators"),),
        licence="work of the US government",
        leaks="DataValueAlt equals the target and is left out; the confidence limits around the "
        "target stay. The paper does not say what it did.",
    ),
    Descriptor(
        key="electric_vehicle_population",
        title="Electric vehicles in Washington",
        target="Electric Range",
        paper="EVP",
        rows=264_628,
        features=392,
        sources=(_data_gov("data.wa.gov", "f6w7-q2d2", "electric-vehicle-population-data"),),
        licence="ODbL 1.0, as the portal states",
        leaks="The VIN prefix, make, model and year name the vehicle, and most vehicles occur "
        "thousands of times. The portal's file grows every month.",
    ),
    Descriptor(
        key="nyc_air_quality",
        title="Air quality in New York",
        target="Data Value",
        drop=("Message",),
        paper="AQ",
        rows=18_862,
        features=390,
        sources=(
            _pinned(
                "vvocke-hub/Final-Project---Air-Pollution-NYC",
                "072c9c3581857dedaf0d8c4a6d7ddf0271b63843",
                "Air_Quality.csv",
                "214d71160ac3a8aead51a79ccd47e800090cb4ef8928540bbfc4c4859da229d5",
            ),
            _data_gov("data.cityofnewyork.us", "c3uy-2p5r", "air-quality"),
        ),
        licence="public, as NYC Open Data states",
    ),
    Descriptor(
        key="ct_real_estate",
        title="Real estate sales in Connecticut",
        target="Sales Ratio",
        paper="RES",
        rows=1_048_575,
        features=389,
        # The most rows of a spreadsheet, less the header: the paper's copy went through one.
        row_limit=1_048_575,
        sources=(_data_gov("data.ct.gov", "5mzw-sjtu", "real-estate-sales-2001-2018"),),
        licence="public domain, as the portal states",
        leaks="Sales Ratio is Assessed Value / Sale Amount, and both are inputs, as in the paper.",
    ),
)

# Parts of them that a data folder may have; its sidecar says the rest.
_PARTS = (
    Descriptor(
        key="ct_real_estate_partial",
        title="Real estate sales in Connecticut, a part",
        target="Sales Ratio",
        paper="RES",
        is_part=True,
        judged_by="mae",
    ),
    Descriptor(
        key="us_chronic_disease_partial",
        title="U.S. chronic disease indicators, a part",
        target="DataValue",
        paper="ChD",
        is_part=True,
        judged_by="mae",
    ),
)

DESCRIPTORS: dict[str, Descriptor] = {descriptor.key: descriptor for descriptor in _NINE}
ALIASES: dict[str, str] = {descriptor.paper: descriptor.key for descriptor in _NINE}


def all_descriptors(data_dir: str | Path | None) -> dict[str, Descriptor]:
    """The paper's datasets and those of a folder's sidecars, by key.

    Parameters
    ----------
    data_dir : str, Path or None
        The data folder, which need not exist.

    Returns
    -------
    dict of str to Descriptor

    Examples
    --------
    >>> list(all_descriptors(None))[:3]
    ['sarcos', 'cpu_small', 'topo_2_1']
    """
    found = dict(DESCRIPTORS)
    folder = None if data_dir is None else Path(data_dir)
    if folder is None or not folder.is_dir():
        return found
    for path in sorted(folder.glob("*.json")):
        key = path.stem
        sidecar = read_sidecar(path) if find_file(key, folder) else None
        if sidecar is None:
            continue
        if key in found:
            found[key] = found[key].with_sidecar(sidecar)
        else:
            known = {"judged_by": judged_by(key)}
            found[key] = Descriptor.from_sidecar(known | sidecar | {"name": key})
    return found


def judged_by(key: str) -> Literal["rmse", "mae"]:
    """The score by which methods are ranked on a dataset, as its descriptor here says.

    Parameters
    ----------
    key : str
        Of a dataset, known here or not.

    Returns
    -------
    {"rmse", "mae"}

    Examples
    --------
    >>> judged_by("cpu_small"), judged_by("ct_real_estate_partial"), judged_by("mine")
    ('rmse', 'mae', 'rmse')
    """
    known = [descriptor for descriptor in (*_NINE, *_PARTS) if descriptor.key == key]
    return known[0].judged_by if known else "rmse"


def find_file(key: str, data_dir: str | Path | None) -> Path | None:
    """The table file with a stem, if the folder has one.

    Parameters
    ----------
    key : str
        The stem.
    data_dir : str, Path or None
        The folder.

    Returns
    -------
    Path or None
    """
    if data_dir is None:
        return None
    candidates = (Path(data_dir) / f"{key}{ending}" for ending in ENDINGS)
    return next((path for path in candidates if path.is_file()), None)


def find_descriptor(name: str, data_dir: str | Path | None) -> Descriptor:
    """The descriptor with a key or one of the paper's abbreviations.

    Parameters
    ----------
    name : str
        Such as "cpu_small" or "CP".
    data_dir : str, Path or None
        Folder whose sidecars count too.

    Returns
    -------
    Descriptor

    Raises
    ------
    InvalidDataError
        If there is none, with the nearest name.

    Examples
    --------
    >>> find_descriptor("CP", None).key
    'cpu_small'
    """
    known = all_descriptors(data_dir)
    key = ALIASES.get(name, name)
    if key in known:
        return known[key]
    close = difflib.get_close_matches(name, [*known, *ALIASES], n=1)
    remedy = f"Did you mean {close[0]!r}?" if close else "Run: tabnsm bench datasets"
    raise InvalidDataError(f"There is no dataset {name!r}. {remedy}")
